package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
)

// newInstallNames is "fit install-names", for those who have only the program: go install makes no
// links.
func newInstallNames(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "install-names [DIR]",
		Short: "Create links named fit-harness, fit-benchmark and so on to this program",
		Long: `Link fit-harness, fit-eval, fit-trace, fit-benchmark, fit-selfedit and subq to this program, in the directory
where it is or in DIR. Links of an earlier call are replaced; other files with these names are left alone, and named.`,
		Example: "  fit install-names\n  fit install-names ~/bin",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			dir, target := filepath.Dir(program), filepath.Base(program)
			if len(args) > 0 {
				dir, target = con.Path(args[0]), program
			}
			switch info, err := os.Stat(dir); {
			case err != nil:
				return console.Usagef("%s is not a directory; create it first: mkdir -p %[1]s", dir)
			case !info.IsDir():
				return console.Usagef("%s is a file; name a directory of your PATH, e.g. fit install-names ~/bin", dir)
			}
			return linkNames(con, dir, target)
		},
	}
}

func linkNames(con *console.Console, dir, target string) error {
	var errs []error
	for _, name := range sortedNames() {
		link := filepath.Join(dir, name)
		info, err := os.Lstat(link)
		switch {
		case err == nil && info.Mode()&fs.ModeSymlink == 0:
			errs = append(errs, console.Exitf(console.ExitUsage, "%s is not a link; remove it first", link))
			continue
		case err == nil:
			err = os.Remove(link)
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		}
		if err == nil {
			err = os.Symlink(target, link)
		}
		if errors.Is(err, fs.ErrPermission) { // as for all others
			return errors.Join(append(errs, fmt.Errorf("%s: you may not write there; name a directory of your PATH, "+
				"e.g. fit install-names ~/bin", dir))...)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("link %s: %w", name, err))
			continue
		}
		fmt.Fprintln(con.Stdout, link)
	}
	return errors.Join(errs...)
}
