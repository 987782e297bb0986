package template

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// contextReader stops a long read when its context ends.
type contextReader struct {
	ctx context.Context //nolint:containedctx // lives as long as one io.Copy
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// digestFile returns "sha256:<hex>" and the size of a file.
func digestFile(ctx context.Context, path string) (string, int64, error) {
	h := sha256.New()
	n, err := hashFile(ctx, h, path)
	return format(h), n, err
}

// digestTree returns a digest over a manifest of a tree (path, mode, owner,
// target or content of every entry, in order) and the sum of the files' sizes.
// Times are no part of it.
func digestTree(ctx context.Context, root string) (string, int64, error) {
	manifest := sha256.New()
	var total int64
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, n, err := digestEntry(ctx, path, info)
		if err != nil {
			return err
		}
		total += n
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		owner := "-"
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			owner = fmt.Sprintf("%d:%d", st.Uid, st.Gid)
		}
		_, err = fmt.Fprintf(manifest, "%q %s %s %s\n", rel, info.Mode(), owner, content)
		return err
	})
	return format(manifest), total, err
}

func digestEntry(ctx context.Context, path string, info fs.FileInfo) (content string, size int64, err error) {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return fmt.Sprintf("%q", target), 0, err
	case info.Mode().IsRegular():
		return digestFile(ctx, path)
	}
	return "-", 0, nil
}

func hashFile(ctx context.Context, h hash.Hash, path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	return io.Copy(h, contextReader{ctx, f})
}

func format(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }
