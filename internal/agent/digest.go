package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Digest returns the SHA-256 of an installed agent's program, links followed; it is empty for an
// agent that is part of this binary. It is remembered like the version, because programs are large.
func Digest(host Host, found Installation) (string, error) {
	if found.Path == "" {
		return "", nil
	}
	real, err := filepath.EvalSymlinks(found.Path)
	if err != nil {
		return "", fmt.Errorf("hash agent program: %w", err)
	}
	file, err := os.Open(real)
	if err != nil {
		return "", fmt.Errorf("hash agent program: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("hash agent program: %w", err)
	}
	key := fmt.Sprintf("sha256\n%s\n%d\n%d", real, info.Size(), info.ModTime().UnixNano())
	if sum, known := recall(host.CacheDir, key); known {
		return sum, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("hash agent program: %w", err)
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	remember(host.CacheDir, key, sum)
	return sum, nil
}

// IsScript reports whether a word of a command line is the absolute path of a file.
func IsScript(word string) bool {
	if !filepath.IsAbs(word) {
		return false
	}
	info, err := os.Stat(word)
	return err == nil && info.Mode().IsRegular()
}
