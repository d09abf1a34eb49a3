// Package foreign writes our results in the formats of other harnesses, one file for each format.
package foreign
