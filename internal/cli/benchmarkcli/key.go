package benchmarkcli

import (
	"fmt"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/ledger"
)

// checkSigner says who signed a ledger. It refuses a signature by a key that is neither the user's
// nor the one that is trusted, and a ledger without one: whoever changes a ledger can remove it.
func checkSigner(con *console.Console, path, signer, trusted string) error {
	own := ""
	if at := experimentcli.KeyPath(con); at != "" {
		if key, err := ledger.LoadKey(at); err == nil {
			own = key.ID()
		}
	}
	switch signer {
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
