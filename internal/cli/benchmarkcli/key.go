package benchmarkcli

import (
	"fmt"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/ledger"
)

// checkSigner says who signed a ledger. It refuses a signature by a key that is neither the user's
// nor the one that is trusted, a ledger without one, because whoever changes a ledger can remove
// it, and a ledger that lacks records which the user's key has signed.
func checkSigner(con *console.Console, path string, contents *ledger.Contents, trusted string) error {
	own, older := "", false
	if at := experimentcli.KeyPath(con); at != "" {
		if key, err := ledger.LoadKey(at); err == nil {
			own, older = key.ID(), key.Older(contents)
		}
	}
	if older {
		return console.Exitf(console.ExitNegative, "%s is older than the last state that your key signed: it was "+
			"put back, or another copy of it was continued", path)
	}
	switch signer := contents.SignedBy; signer {
	case "":
		return console.Exitf(console.ExitNegative, "%s is not signed, so a complete rewrite would not be detected",
			path)
	case trusted:
		fmt.Fprintf(con.Stdout, "%s: signed by the key given\n", path)
	case own:
		fmt.Fprintf(con.Stdout, "%s: signed by your key\n", path)
	default:
		return console.Exitf(console.ExitNegative, "%s is signed by key %s, which is not yours; if you trust it, give "+
			"--key", path, signer)
	}
	return nil
}
