package benchmarkcli

import (
	"fmt"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/ledger"
)

// checkSigner says who signed a ledger. It refuses a signature by a key that is neither the user's
// nor the one that is trusted, a ledger without one, because whoever changes a ledger can remove
// it, and a ledger that lacks records which the user's key has signed.
func checkSigner(con *console.Console, read results.Ledger, trusted string) error {
	found := ledger.SignerOf(experimentcli.OwnKey(con), read.Path, read.Contents)
	switch {
	case !found.Doubt && trusted != "" && read.Contents.SignedBy == trusted:
		fmt.Fprintf(con.Stdout, "%s: signed by the key given\n", read.Path)
	case found.Own:
		fmt.Fprintf(con.Stdout, "%s: signed by your key\n", read.Path)
	case read.Contents.SignedBy != "" && !found.Doubt:
		return console.Exitf(console.ExitNegative, "%s; if you trust it, use --key", found.Note)
	default:
		return console.Exitf(console.ExitNegative, "%s", found.Note)
	}
	return nil
}

// noteSigners says which ledgers are not signed by the user. What the user's key knows to be wrong
// is a warning of the report as well.
func noteSigners(con *console.Console, found *results.Results) {
	for _, signer := range found.Signers(experimentcli.OwnKey(con)) {
		experimentcli.NoteSigner(con, signer)
	}
}
