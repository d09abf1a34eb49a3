package selfedit

import (
	"context"
	"errors"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/glob"
)

// checkBranch is part of the second safeguard: it returns the branch the repository is on, or
// refuses it.
func checkBranch(ctx context.Context, repo repository, config []configEntry) (head, error) {
	current, err := repo.readHead(ctx)
	switch {
	case errors.Is(err, errDetached):
		return head{}, outOfScope("HEAD of %s is detached; switch to a feature branch first", display.Name(repo.top))
	case errors.Is(err, errUnborn):
		return head{}, outOfScope("failed to read the current git branch: branch '%s' has no commit yet",
			display.Name(current.branch))
	case err != nil:
		return head{}, outOfScope("failed to read the current git branch: %v", err)
	}
	protected, err := protectedBranches(ctx, repo, config)
	if err != nil {
		return head{}, err
	}
	for _, name := range append(current.through, current.branch) {
		for _, rule := range protected {
			if rule.covers(name) {
				return head{}, outOfScope("%s is on branch '%s', which %s; switch to a feature branch first",
					display.Name(repo.top), display.Name(name), rule.reason)
			}
		}
	}
	return current, nil
}

// protectedBranch is a branch that must not be edited on. Names are compared without regard to
// letter case, because file systems do that to refs.
type protectedBranch struct {
	name    string
	pattern glob.Pattern
	reason  string
}

func (p protectedBranch) covers(branch string) bool {
	folded := foldName(branch)
	return folded == foldName(p.name) || p.pattern.Match(folded)
}

func protectedBranches(ctx context.Context, repo repository, config []configEntry) ([]protectedBranch, error) {
	protected := []protectedBranch{
		{name: "main", reason: "is always protected"},
		{name: "master", reason: "is always protected"},
	}
	defaults, err := repo.remoteDefaults(ctx, config)
	if err != nil {
		return nil, outOfScope("failed to read the default branch of a remote: %v", err)
	}
	for _, name := range defaults {
		protected = append(protected, protectedBranch{name: name, reason: "is the default branch of a remote"})
	}
	configured, err := configuredBranches(config)
	return append(protected, configured...), err
}

// configuredBranches finds fit.selfedit.protectedBranches, whatever the letter case: it can only
// add.
func configuredBranches(config []configEntry) ([]protectedBranch, error) {
	var protected []protectedBranch
	for _, entry := range config {
		if !strings.EqualFold(entry.key, "fit.selfedit.protectedbranches") {
			continue
		}
		for name := range strings.FieldsFuncSeq(entry.value,
			func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
			rule := protectedBranch{
				name:   strings.TrimPrefix(name, "refs/heads/"),
				reason: "fit.selfedit.protectedBranches protects",
			}
			if strings.ContainsAny(name, "*?[") {
				var err error
				if rule.pattern, err = glob.Compile(foldName(rule.name)); err != nil {
					return nil, outOfScope("fit.selfedit.protectedBranches: %v", err)
				}
			}
			protected = append(protected, rule)
		}
	}
	return protected, nil
}
