package benchmarkcli

import (
	"fmt"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/report/results"
)

// signer is who signed a ledger, and what speaks against taking it for the user's own.
type signer struct {
	own bool
	// note says what a reader must know; doubt is set where the user's key knows that something was
	// put back, removed or replaced.
	note  string
	doubt bool
}

// signerOf looks at the signature of a ledger, and at what the user's key remembers about it.
func signerOf(con *console.Console, read results.Ledger) signer {
	path, contents := read.Path, read.Contents
	var key *ledger.SigningKey
	if at := experimentcli.KeyPath(con); at != "" {
		key, _ = ledger.LoadKey(at) // who has no key has signed nothing
	}
	switch {
	case contents.Head == "": // nothing was recorded yet
		return signer{own: true}
	case key != nil && key.Older(contents):
		return signer{doubt: true, note: path + " is older than the last state that your key signed: it was put " +
			"back, or another copy of it was continued"}
	case key != nil && contents.SignedBy == key.ID():
		return signer{own: true}
	case contents.SignedBy != "":
		return signer{note: fmt.Sprintf("%s is signed by key %s, which is not yours", path, contents.SignedBy)}
	case key != nil && key.Signed(contents):
		return signer{doubt: true, note: path + " is not signed: its signature was removed; the records are still " +
			"those that your key signed"}
	case key != nil && key.Replaced(path, contents):
		return signer{doubt: true, note: path + " is not signed, and your key signed other results in this " +
			"directory: they were replaced"}
	}
	return signer{note: path + " is not signed, so a complete rewrite would not be detected"}
}

// checkSigner says who signed a ledger. It refuses a signature by a key that is neither the user's
// nor the one that is trusted, a ledger without one, because whoever changes a ledger can remove
// it, and a ledger that lacks records which the user's key has signed.
func checkSigner(con *console.Console, read results.Ledger, trusted string) error {
	found := signerOf(con, read)
	switch {
	case !found.doubt && trusted != "" && read.Contents.SignedBy == trusted:
		fmt.Fprintf(con.Stdout, "%s: signed by the key given\n", read.Path)
	case found.own:
		fmt.Fprintf(con.Stdout, "%s: signed by your key\n", read.Path)
	case read.Contents.SignedBy != "" && !found.doubt:
		return console.Exitf(console.ExitNegative, "%s; if you trust it, give --key", found.note)
	default:
		return console.Exitf(console.ExitNegative, "%s", found.note)
	}
	return nil
}

// noteSigners says which ledgers are not signed by the user. What the user's key knows to be wrong
// is a warning of the report as well.
func noteSigners(con *console.Console, found *results.Results) {
	for _, read := range found.Ledgers {
		one := signerOf(con, read)
		if one.note != "" {
			fmt.Fprintf(con.Stderr, "note: %s\n", one.note)
		}
		if one.doubt {
			found.Doubts = append(found.Doubts, one.note)
		}
	}
}
