// Package release tests what a version of fit is published as: built twice it is the same, and
// installed where nothing else of fit is, it runs.
package release
