package selfedit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"golang.org/x/sys/unix"
)

// MaxBytes is the largest content an edit can have. A request may ask for a lower limit, never for
// a higher one.
const MaxBytes = 8 << 20

// ExpectAbsent is the value of Request.ExpectSHA256 for a file that must not exist yet.
const ExpectAbsent = "none"

// Request is one edit.
type Request struct {
	// Path is the file to replace; Dir is what it is relative to, the process's own directory if
	// empty.
	Path, Dir string
	// Content is the new content of the file. It may be nil for a Check.
	Content io.Reader
	// MaxBytes lowers the size limit if it is between 1 and the constant MaxBytes.
	MaxBytes int64
	// ExpectSHA256 makes the edit depend on the hash of the present content, in lower-case hex, or
	// ExpectAbsent; empty for no condition.
	ExpectSHA256 string
	// Mkdir creates missing directories of the path.
	Mkdir bool
	// Check does everything but changes nothing.
	Check bool
	// Diff asks for the number of lines that change.
	Diff bool
	// Home, XDGConfigHome and GitConfigs are where git's configuration is looked for, besides the
	// repository and the home directory the system knows: directories and files.
	Home, XDGConfigHome string
	GitConfigs          []string
}

// Result says what was done, or would have been.
type Result struct {
	// Path is relative to Root, the grandparent directory of the settings file.
	Path string `json:"path"`
	Root string `json:"root"`
	// Rule is the allow rule that matched, in the file Settings.
	Rule     string `json:"rule"`
	Settings string `json:"settings"`
	Branch   string `json:"branch"`
	Commit   string `json:"commit"`
	Bytes    int64  `json:"bytes"`
	// OldSHA256 is empty if the file is new.
	OldSHA256 string `json:"oldSha256,omitempty"`
	NewSHA256 string `json:"newSha256,omitempty"`
	Written   bool   `json:"written"`
	// OtherNames is how many hard links elsewhere keep the old content.
	OtherNames int   `json:"otherNames,omitempty"`
	Diff       *Diff `json:"diff,omitempty"`
}

// Editor carries out edits. Its zero value is ready to use.
type Editor struct {
	// Now is the clock of the audit log, in epoch milliseconds; nil means the system's.
	Now func() int64
	// beforePlacing and afterPlacing let tests act at the two moments that matter.
	beforePlacing, afterPlacing func()
	// portable makes the write do without the calls that only Linux has.
	portable bool
}

// Edit carries out one edit. The error is a *Refusal if a safeguard refused it.
func (e *Editor) Edit(ctx context.Context, request Request) (Result, error) {
	target, err := absolute(request)
	if err != nil {
		return Result{}, err
	}
	home := homesOf(request)
	first, err := makePlan(ctx, target, home)
	if err != nil {
		return Result{}, err
	}
	defer first.close()
	content, err := readContent(ctx, request)
	if err != nil {
		return Result{}, err
	}
	result, err := prepare(first, request, content)
	if err != nil {
		return Result{}, err
	}
	if request.Check {
		return result, nil
	}
	log, err := openAuditLog(ctx, first.repo.gitDir)
	if err != nil {
		return Result{}, err
	}
	defer log.close()
	// Reading the content and waiting for the lock may have taken long: only what holds now counts.
	made, err := makePlan(ctx, target, home)
	if err != nil {
		return Result{}, err
	}
	defer made.close()
	if made.repo != first.repo {
		return Result{}, outOfScope("the repository of %s changed while the content was read", display.Name(target))
	}
	if result, err = prepare(made, request, content); err != nil {
		return Result{}, err
	}
	return e.write(ctx, writing{
		plan:    made,
		home:    home,
		content: content,
		log:     log,
		result:  result,
	})
}

func absolute(request Request) (string, error) {
	if request.Path == "" {
		return "", notAllowed("the path is empty")
	}
	if filepath.IsAbs(request.Path) {
		return filepath.Clean(request.Path), nil
	}
	dir, err := filepath.Abs(request.Dir)
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	return filepath.Join(dir, request.Path), nil
}

// homesOf returns every directory that may be home: the environment can add one but not hide the
// one the system knows.
func homesOf(request Request) homeDirs {
	home := homeDirs{xdgConfig: request.XDGConfigHome}
	if filepath.IsAbs(request.Home) {
		home.dirs = append(home.dirs, filepath.Clean(request.Home))
	}
	if account := accountHome(); filepath.IsAbs(account) && !slices.Contains(home.dirs, account) {
		home.dirs = append(home.dirs, account)
	}
	for _, file := range request.GitConfigs {
		if filepath.IsAbs(file) {
			home.files = append(home.files, filepath.Clean(file))
		}
	}
	return home
}

// accountHome returns the home directory of the account that this process runs under; empty if it
// is not known. Package os/user takes it from the environment in programs without C, and the caller
// controls the environment: the list of accounts comes first.
func accountHome() string {
	uid := strconv.Itoa(os.Getuid())
	accounts, err := os.ReadFile("/etc/passwd")
	if err == nil {
		for line := range strings.Lines(string(accounts)) {
			const uidField, homeField = 2, 5
			if fields := strings.Split(line, ":"); len(fields) > homeField && fields[uidField] == uid {
				return fields[homeField]
			}
		}
	}
	if account, err := user.Current(); err == nil {
		return account.HomeDir
	}
	return ""
}

// readContent reads the content up to the limit. A reader that blocks cannot be interrupted, so the
// one goroutine here may outlive a cancelled call.
func readContent(ctx context.Context, request Request) ([]byte, error) {
	if request.Content == nil {
		return nil, nil
	}
	limit := min(cmp.Or(max(request.MaxBytes, 0), MaxBytes), MaxBytes)
	type outcome struct {
		content []byte
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		content, err := io.ReadAll(io.LimitReader(request.Content, limit+1))
		done <- outcome{content, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case read := <-done:
		if read.err != nil {
			return nil, fmt.Errorf("reading the content: %w", read.err)
		}
		if int64(len(read.content)) > limit {
			return nil, notAllowed("size: the content is larger than %d bytes", limit)
		}
		return read.content, nil
	}
}

// prepare checks what is asked of the present file and fills in the result.
func prepare(made *plan, request Request, content []byte) (Result, error) {
	result := Result{
		Path:     made.rel,
		Root:     made.root,
		Rule:     made.rule,
		Settings: made.settings.path,
		Branch:   made.head.branch,
		Commit:   made.head.commit,
	}
	if made.parent == nil && !request.Mkdir {
		return result, fmt.Errorf("write failed (--mkdir would create it): parent directory %s: %w",
			display.Name(filepath.Dir(made.target)), fs.ErrNotExist)
	}
	if made.exists && isDirectory(made.old) {
		return result, fmt.Errorf("write failed: %s: %w", display.Name(made.rel), unix.EISDIR)
	}
	var old []byte
	if made.exists {
		var err error
		if result.OldSHA256, old, err = readOld(made); err != nil {
			return result, err
		}
		result.OtherNames = int(made.old.Nlink) - 1
	}
	if err := checkExpected(made, request.ExpectSHA256, result.OldSHA256); err != nil {
		return result, err
	}
	if request.Content != nil {
		result.Bytes = int64(len(content))
		result.NewSHA256 = hashOf(content)
		if request.Diff {
			result.Diff = diffLines(old, content)
		}
	}
	return result, nil
}

// readOld hashes the present file and returns its beginning, up to the largest size of an edit.
func readOld(made *plan) (hash string, beginning []byte, err error) {
	if err := made.parent.writable(made.base()); err != nil {
		return "", nil, fmt.Errorf("write failed: %s: %w", display.Name(made.rel), err)
	}
	file, err := made.parent.open(made.base())
	if errors.Is(err, errLink) {
		return "", nil, notAllowed("'%s' is a symbolic link", display.Name(made.rel))
	}
	if err != nil {
		return "", nil, fmt.Errorf("reading %s: %w", display.Name(made.rel), err)
	}
	defer file.Close()
	return hashFile(file)
}

func hashFile(file *os.File) (hash string, beginning []byte, err error) {
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", nil, errors.Join(errors.New("not a regular file"), err)
	}
	sum := sha256.New()
	var kept bytes.Buffer
	if _, err := io.Copy(io.MultiWriter(sum, &kept), io.LimitReader(file, MaxBytes)); err != nil {
		return "", nil, err
	}
	if _, err := io.Copy(sum, file); err != nil {
		return "", nil, err
	}
	return hex.EncodeToString(sum.Sum(nil)), kept.Bytes(), nil
}

func hashOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func checkExpected(made *plan, expected, actual string) error {
	switch {
	case expected == "", expected == actual, expected == ExpectAbsent && !made.exists:
		return nil
	case !made.exists:
		return notAllowed("hash: '%s' does not exist, expected sha256 %s", display.Name(made.rel), expected)
	case expected == ExpectAbsent:
		return notAllowed("hash: '%s' exists with sha256 %s, expected no file", display.Name(made.rel), actual)
	}
	return notAllowed("hash: '%s' has sha256 %s, expected %s; it changed since you read it", display.Name(made.rel),
		actual, expected)
}

func (e *Editor) now() int64 {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now().UnixMilli()
}
