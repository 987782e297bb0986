package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// writeArchive packs a tree below one folder. What a file is named, holds and may
// decides about the bytes; when, where and by whom the tree was made does not.
func writeArchive(target, tree, folder string, date time.Time) (err error) {
	f, err := os.Create(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	packed, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(packed)
	// In the order of names: a directory before what is in it.
	err = fs.WalkDir(os.DirFS(tree), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return addFile(w, tree, name, folder, d, date)
	})
	return errors.Join(err, w.Close(), packed.Close())
}

func addFile(w *tar.Writer, tree, name, folder string, d fs.DirEntry, date time.Time) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: path.Join(folder, name), Mode: plainMode(info), ModTime: date, Format: tar.FormatUSTAR, Uname: "root", Gname: "root"}
	switch {
	case info.IsDir():
		header.Typeflag = tar.TypeDir
		header.Name += "/"
		return w.WriteHeader(header)
	case info.Mode().IsRegular():
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
	default:
		return fmt.Errorf("%s is neither a file nor a directory", name)
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(tree, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// plainMode is what the builder's umask has no say in: who may run it, all may.
func plainMode(info fs.FileInfo) int64 {
	if info.IsDir() || info.Mode()&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// writeChecksums writes what `sha256sum -c` reads.
func writeChecksums(dir string, names []string) error {
	var lines strings.Builder
	for _, name := range slices.Sorted(slices.Values(names)) {
		sum, err := fileSum(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(lines.String()), 0o644) //nolint:gosec // it is published
}

func fileSum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}
