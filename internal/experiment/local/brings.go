package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
)

// defaultSkillsDir is where the skills of a family go for an agent that has no place for them.
const defaultSkillsDir = ".claude/skills"

func skillsDir(info agent.Info) string {
	if len(info.Places.Skills) == 0 {
		return defaultSkillsDir
	}
	return info.Places.Skills[0]
}

// bring finds what an arm brings to its agent, decides where the agent gets it, and refuses what it
// could not get.
func (p *preparation) bring(arm *experiment.Arm, info agent.Info) error {
	arm.SettleContext(p.Family.Tasks)
	arm.Skills = cmp.Or(arm.Skills, p.Skills)
	if err := absolute(arm); err != nil {
		return err
	}
	if err := arm.CheckContext(); err != nil {
		return err
	}
	brings, err := arm.Contents()
	if err != nil {
		return err
	}
	if err := agent.RequirePlaces(info, has(brings, ledger.PieceSkill), arm.Instructions != ""); err != nil {
		return err
	}
	if arm.Skills == "" {
		shared, err := familyBrings(p.Family)
		if err != nil {
			return err
		}
		brings = append(brings, shared...)
	}
	for i := range brings {
		p.place(&brings[i], info)
	}
	if err := checkVersions(brings); err != nil {
		return err
	}
	p.Brings[arm.Name] = brings
	if digest := skillsDigest(brings); digest != "" {
		p.SkillHashes[arm.Name] = digest
	}
	return nil
}

func has(brings []experiment.Bring, kind string) bool {
	return slices.ContainsFunc(brings, func(b experiment.Bring) bool { return b.Kind == kind })
}

// absolute makes the paths of an arm independent of the working directory.
func absolute(arm *experiment.Arm) error {
	var skills []string
	for _, dir := range experiment.SkillPaths(arm.Skills) {
		path, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		skills = append(skills, path)
	}
	arm.Skills = strings.Join(skills, "+")
	for _, path := range []*string{&arm.Instructions, &arm.Files, &arm.MCP, &arm.Settings} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}

// familyBrings returns what the .claude of a family brings to all arms.
func familyBrings(family *task.Family) ([]experiment.Bring, error) {
	if family.Skills == "" {
		return nil, nil
	}
	brings, err := experiment.ReadSkills(family.Skills)
	if errors.Is(err, experiment.ErrNoSkill) {
		return nil, nil // a family may have other files there
	}
	if err != nil {
		return nil, fmt.Errorf("skills of the family: %w", err)
	}
	for i := range brings {
		brings[i].From = ledger.FromFamily
	}
	return brings, nil
}

// place says where the agent gets something.
func (p *preparation) place(b *experiment.Bring, info agent.Info) {
	dir := skillsDir(info)
	switch {
	case b.Kind == ledger.PieceSkill:
		b.Path = path.Join(dir, b.Name)
		if b.From == ledger.FromArm {
			b.Alone = []string{b.Path}
			for _, other := range info.Places.Skills {
				if other != dir {
					b.Alone = append(b.Alone, path.Join(other, b.Name))
				}
			}
		}
	case b.Kind == ledger.PieceInstructions:
		b.Path, b.Replaces = info.Places.MainInstructions(), p.machine.instructionFiles()
	case b.Kind == ledger.PieceFile && b.Path == "":
		b.Path = "."
	default:
		for _, shared := range []string{".claude/skills/", ".agents/skills/"} {
			if rest, found := strings.CutPrefix(b.Path, shared); found { // beside the skills that need it
				b.Path = path.Join(dir, rest)
			}
		}
	}
}

// instructionFiles returns the instruction files of all agents.
func (m *Machine) instructionFiles() []string {
	var all []string
	for _, id := range m.Registry.IDs() {
		if known, err := m.Registry.Get(id); err == nil {
			all = append(all, known.Info().Places.Instructions...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// skillsDigest identifies the set of skills, with what comes along; empty: there is none.
func skillsDigest(brings []experiment.Bring) string {
	var parts []string
	for _, b := range brings {
		switch {
		case b.Path == "." || b.Path == "" || b.Kind == ledger.PieceInstructions:
		default:
			parts = append(parts, b.Kind+" "+b.Name+" "+b.Digest)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// checkTaken refuses skills whose names the files of a task have already, as far as that can be
// known before a working directory is made.
func (p *preparation) checkTaken(ctx context.Context) error {
	listed := skillNames{}
	for _, arm := range p.Arms {
		for _, b := range p.Brings[arm.Name] {
			name := skillName(&b)
			for _, place := range b.Alone {
				for i := range p.Family.Tasks {
					t := &p.Family.Tasks[i]
					if taken := takenBy(ctx, t, place, name, listed); taken != "" {
						return fmt.Errorf("arm %s: %w", arm.Name, &workspace.TakenError{
							Name: described(&b),
							Path: taken,
							Task: t.ID,
						})
					}
				}
			}
		}
	}
	return nil
}

// takenBy returns what the overlays or the repository of a task have at the place of a skill, or
// beside it in a directory of another name but with the name of the skill; empty: nothing.
func takenBy(ctx context.Context, t *task.Task, place, name string, listed skillNames) string {
	if taskHas(ctx, t, place) {
		return place
	}
	for _, overlay := range t.Overlays {
		if rest, below := placeIn(overlay, place); below {
			if other := listed.namesake(overlay.From, filepath.ToSlash(rest), name); other != "" {
				return path.Join(overlay.To, other)
			}
		}
	}
	return ""
}

// taskHas reports whether the overlays or the repository of a task have something at a place.
func taskHas(ctx context.Context, t *task.Task, place string) bool {
	for _, overlay := range t.Overlays {
		if rest, below := placeIn(overlay, place); below {
			if _, err := os.Lstat(filepath.Join(overlay.From, rest)); err == nil {
				return true
			}
		}
	}
	if t.Settings.Repo == "" {
		return false
	}
	found, err := git.Output(ctx, t.Settings.Repo, "ls-tree", "--name-only", "-z",
		cmp.Or(t.Settings.Ref, "HEAD"), "--", place)
	return err == nil && found != ""
}

// placeIn returns where a place of the working directory is in an overlay.
func placeIn(overlay task.Overlay, place string) (rest string, below bool) {
	rest, err := filepath.Rel(filepath.FromSlash(cmp.Or(overlay.To, ".")), filepath.FromSlash(place))
	return rest, err == nil && filepath.IsLocal(rest)
}

// skillNames are the directories of the skills of a directory, by their names in the front matter.
type skillNames map[string]map[string]string

// namesake returns the skill below dir that is beside a place and has this name: to an agent, the
// two are one. It is empty if there is none; what cannot be read is none.
func (s skillNames) namesake(dir, place, name string) string {
	key := filepath.Join(dir, filepath.FromSlash(path.Dir(place)))
	if _, known := s[key]; !known {
		s[key] = map[string]string{}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return ""
		}
		defer root.Close()
		beside, _ := skill.List(root, path.Dir(place))
		for i := range beside {
			s[key][beside[i].Name] = beside[i].Dir
		}
	}
	if at := s[key][name]; at != "" {
		return at + " (name: " + name + ")"
	}
	return ""
}

// skillName returns what the front matter of a skill says it is called, else its directory's name.
func skillName(b *experiment.Bring) string {
	if b.Kind != ledger.PieceSkill {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(b.Source, skill.FileName))
	if err != nil {
		return b.Name
	}
	return skill.Parse(b.Name, text).Name
}

// checkVersions refuses two settings of an arm that bring the same path, of which only one would
// reach the agent.
func checkVersions(brings []experiment.Bring) error {
	listed, named := skillNames{}, map[string]string{}
	for i := range brings {
		b := &brings[i]
		if b.From != ledger.FromArm || b.Path == "" || b.Path == "." {
			continue
		}
		places, err := claims(b)
		if err != nil {
			return err
		}
		name := skillName(b)
		if other := named[name]; name != "" && other != "" {
			return fmt.Errorf("there are two of the name %s: %s and %s; leave one out", name, other, b.Source)
		}
		named[name] = b.Source
		for j := range brings {
			other := &brings[j]
			if i == j || other.From != ledger.FromArm {
				continue
			}
			for _, place := range places {
				_, clash := broughtAt([]experiment.Bring{*other}, place)
				if b.Kind == ledger.PieceSkill && other.Path == "." && !clash {
					place = listed.namesake(other.Source, place, name)
					clash = place != ""
				}
				if clash {
					return fmt.Errorf("the %s and the %s bring two versions of %s; leave one out", described(b),
						described(other), place)
				}
			}
		}
	}
	return nil
}

// claims returns the paths that nothing else of the same arm may bring.
func claims(b *experiment.Bring) ([]string, error) {
	if b.Kind == ledger.PieceSkill {
		return b.Alone, nil
	}
	places := slices.Clone(b.Replaces)
	err := filepath.WalkDir(b.Source, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rest, err := filepath.Rel(b.Source, name)
		places = append(places, path.Join(b.Path, filepath.ToSlash(rest)))
		return err
	})
	return places, err
}

// described names something with where it comes from.
func described(b *experiment.Bring) string {
	if b.Path == "." {
		return "files of " + b.Source
	}
	return b.Kind + " " + b.Name + " of " + b.Source
}

// workspaceBrings returns what an arm itself brings into its working directories.
func workspaceBrings(brings []experiment.Bring) (laid []workspace.Bring) {
	for _, b := range brings {
		if b.From != ledger.FromArm || b.Path == "" {
			continue
		}
		to := b.Path
		if to == "." {
			to = ""
		}
		laid = append(laid, workspace.Bring{
			Name:     b.Kind + " " + b.Name,
			Source:   b.Source,
			To:       to,
			Alone:    b.Alone,
			Replaces: b.Replaces,
		})
	}
	return laid
}

// broughtAt returns what brings a path of an agent's working directory: something of the arm, or of
// the family. Everything else is the task's.
func broughtAt(brings []experiment.Bring, name string) (experiment.Brought, bool) {
	for _, b := range slices.Backward(brings) { // what is laid later wins
		switch {
		case b.Path == ".":
			if _, err := os.Lstat(filepath.Join(b.Source, filepath.FromSlash(name))); err == nil {
				return b.Brought, true
			}
		case b.Path != "" && (name == b.Path || strings.HasPrefix(name, b.Path+"/")):
			return b.Brought, true
		}
	}
	return experiment.Brought{From: ledger.FromTask}, false
}

// bringsUnchanged makes sure that what the arm brings is what the plan was made with: somebody may
// have changed it since, or it may have been damaged on its way to this machine.
func (a *attempt) bringsUnchanged(ctx context.Context) bool {
	for _, b := range a.prepared.Brings[a.arm.Name] {
		digest, err := b.CurrentDigest()
		if err == nil && digest != b.Digest {
			err = fmt.Errorf("%s %s (%s) has changed since the plan was made; run the same command again", b.Kind,
				b.Name, b.Source)
		}
		if err != nil {
			return a.fail(ctx, ledger.ErrorSetup, fmt.Errorf("arm %s: %w", a.arm.Name, err))
		}
	}
	return true
}
