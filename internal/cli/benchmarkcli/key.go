package benchmarkcli

import (
	"fmt"
	"path/filepath"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/ledger"
)

// keyPath is where the user's key that signs ledgers lies; empty where there is no such place.
func keyPath(con *console.Console) string {
	if dir := con.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fit", "ledger.key")
	}
	if home := con.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "fit", "ledger.key")
	}
	return ""
}

// signingKey returns the user's key, which is made on first use. A ledger without a signature is
// better than no ledger.
func signingKey(con *console.Console) *ledger.SigningKey {
	path := keyPath(con)
	if path == "" {
		return nil
	}
	key, err := ledger.CreateKey(path)
	if err != nil {
		fmt.Fprintf(con.Stderr, "note: the results are not signed: %v\n", err)
		return nil
	}
	return key
}

// checkSigner says who signed a ledger, and refuses a signature by a key that is neither the user's
// nor the one that is trusted.
func checkSigner(con *console.Console, path, signer, trusted string) error {
	own := ""
	if at := keyPath(con); at != "" {
		if key, err := ledger.LoadKey(at); err == nil {
			own = key.ID()
		}
	}
	switch signer {
	case "":
		fmt.Fprintf(con.Stdout, "%s: not signed: that all lines were sealed again would not be noticed\n", path)
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
