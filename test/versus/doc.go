// Package versus runs a whole head to head for real: three vendors' agents on one task, with the
// scripted model on loopback, judged and reported.
package versus
