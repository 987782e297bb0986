package template

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"io"
	"os"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Artifact is one file of one release at a registry, pinned by its digest: what
// a template's tools come in.
type Artifact struct {
	Ecosystem pkgref.Ecosystem `json:"ecosystem"`
	Name      string           `json:"name"` // canonical, at its registry
	Version   string           `json:"version"`
	File      string           `json:"file"`
	Digest    string           `json:"digest"` // "sha256-<hex>", or "sha512-<base64>" as npm writes it
}

// Origin is where a fetched artifact came from.
type Origin struct {
	URL    string `json:"url"`    // without credentials
	SHA256 string `json:"sha256"` // hex
	Run    string `json:"run"`    // in whose records the log has it
	Record uint64 `json:"record"` // the number of that record
}

// Fetcher brings pinned artifacts from registries. The caller verifies what it brought.
type Fetcher interface {
	// Fetch puts each artifact into dir under its File and returns their origins
	// in the same order. All of one call are one run in the log.
	Fetch(ctx context.Context, template string, wanted []Artifact, dir string, report func(Progress)) ([]Origin, error)
}

// verify compares a file with the artifact's digest, and returns the file's
// sha256 in hex.
func (a Artifact) verify(ctx context.Context, path string) (string, error) {
	algorithm, text, _ := strings.Cut(a.Digest, "-")
	var want []byte
	var err error
	strong := sha512.New()
	switch algorithm {
	case "sha256":
		strong = sha256.New()
		want, err = hex.DecodeString(text)
	case "sha512":
		want, err = base64.StdEncoding.DecodeString(text)
	default:
		err = fault.Invalid("no digest")
	}
	if err != nil || len(want) != strong.Size() {
		return "", fault.Invalid("%s is pinned by %q, which is not a digest", a.File, a.Digest)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(strong, sum), contextReader{ctx, f}); err != nil {
		return "", err
	}
	if !bytes.Equal(strong.Sum(nil), want) {
		return "", fault.New(fault.ErrUnavailable, "%s is another file than the pinned one", a.File)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
