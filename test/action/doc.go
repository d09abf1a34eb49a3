// Package action tests the GitHub action: its steps run with a shell as a runner would run them,
// against a stand-in for GitHub's API, and the workflows that are shown pass a linter.
package action
