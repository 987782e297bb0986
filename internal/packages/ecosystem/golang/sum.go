package golang

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

var sumText = regexp.MustCompile(`^h1:[A-Za-z0-9+/]{43}=$`)

// isDigestLine tells a digest as the database writes it.
func isDigestLine(s string) bool {
	if !sumText.MatchString(s) {
		return false
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(s, "h1:"))
	return err == nil && len(raw) == sha256.Size
}

// zipLimits are those of the go command.
func zipLimits() archive.Limits { return archive.Limits{Unpacked: zip.MaxZipFile} }

// SumFile is the sum of a zip: the sha256 of the lines "<sha256>  <name>" of its
// files in the order of their names.
func (Protocol) SumFile(_ ecosystem.File, content ecosystem.Content) (string, error) {
	z, err := openZip(content)
	if err != nil {
		return "", err
	}
	sums := map[string]string{}
	for _, m := range z.Members() {
		if m.Mode.IsDir() { // counts as an empty file with a slash at its end
			empty := sha256.Sum256(nil)
			sums[m.Path+"/"] = hex.EncodeToString(empty[:])
		}
	}
	err = z.Visit(func(m archive.Member, content io.Reader) error {
		h := sha256.New()
		_, err := io.Copy(h, content)
		sums[m.Path] = hex.EncodeToString(h.Sum(nil))
		return err
	})
	if err != nil {
		return "", err
	}
	return sumFiles(sums), nil
}

// sumFiles sums files, by name to their sha256 in hexadecimal.
func sumFiles(files map[string]string) string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		_, _ = io.WriteString(h, files[name]+"  "+name+"\n") // a hash takes everything
	}
	return "h1:" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// SumAttachment is the sum of a .mod.
func (Protocol) SumAttachment(r ecosystem.Route, body []byte) (string, error) {
	if !strings.HasSuffix(r.File, extMod) || r.Query {
		return "", fault.Invalid("the checksum database has no digest for %s", redact.Cut(r.File, maxQuoted))
	}
	return sumMod(body)
}

func sumMod(body []byte) (string, error) {
	return dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(body)), nil
	})
}

// openZip opens a module's zip strictly.
func openZip(content ecosystem.Content) (*archive.ZipReader, error) {
	if content.Size() > zip.MaxZipFile {
		return nil, fault.Invalid("the zip has %d bytes; the go command takes at most %d", content.Size(), int64(zip.MaxZipFile))
	}
	return archive.Zip(content, content.Size(), zipLimits())
}
