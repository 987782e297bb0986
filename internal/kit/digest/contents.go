// Package digest computes and reads digests of packages: one over the files of an unpacked
// package, which is the same whether it is computed from the archive or from the directory that a
// client made, and those of subresource integrity, which npm's registries and lockfiles write as
// "algorithm-base64", several with blanks between.
package digest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
)

// Files are the digests of a package's files by their paths within it, with slashes.
// Modes and times are not part of it, for clients set their own.
type Files map[string][sha256.Size]byte

// Add takes a file, reading it to its end. A file that clients rename or leave out while unpacking,
// and that nothing runs, counts for nothing.
func (f Files) Add(name string, content io.Reader) error {
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return err
	}
	switch path.Base(name) {
	case ".gitignore", ".npmignore":
		return nil
	}
	f[name] = [sha256.Size]byte(h.Sum(nil))
	return nil
}

// Digest names the files, "sha256:<hex>"; "" if there are none.
func (f Files) Digest() string {
	if len(f) == 0 {
		return ""
	}
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&all, "%x %d %s\n", f[name], len(name), name)
	}
	sum := sha256.Sum256(all.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:])
}
