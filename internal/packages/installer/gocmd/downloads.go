package gocmd

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-json-experiment/json"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// download is a line of `go mod download -json`.
type download struct {
	Path     string
	Version  string
	Sum      string
	GoModSum string
	Error    string
}

// eachDownload reads what go fetched: a stream of JSON objects.
func eachDownload(data []byte, do func(download) error) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for range installer.MaxChoices {
		var d download
		err := json.UnmarshalDecode(dec, &d)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fault.Wrap(fault.ErrInvalid, err, "what go says of its downloads can't be read")
		}
		if !installer.StrongDigest(d.Sum) || !installer.StrongDigest(d.GoModSum) || strings.ContainsAny(d.Path+d.Version, " \t\r\n") {
			return fault.Invalid("go says nothing of the hashes of %s %s", text.Shorten(d.Path, installer.MaxQuoted), text.Shorten(d.Version, installer.MaxQuoted))
		}
		if err := do(d); err != nil {
			return err
		}
	}
	return fault.Invalid("go names more than %d modules", installer.MaxChoices)
}

func readDownloads(data []byte) (installer.Result, error) {
	out := installer.Result{Ecosystem: pkgref.Go}
	err := eachDownload(data, func(d download) error {
		ref, err := pkgref.New(pkgref.Go, d.Path, d.Version)
		if err != nil || ref.Version == "" {
			return fault.Invalid("go names %q %q, which is not a release of a module", text.Shorten(d.Path, installer.MaxQuoted), text.Shorten(d.Version, installer.MaxQuoted))
		}
		if !slices.ContainsFunc(out.Choices, func(c installer.Choice) bool { return c.Name == ref.Name && c.Version == ref.Version }) {
			out.Choices = append(out.Choices, installer.Choice{Name: ref.Name, Version: ref.Version, Digests: []string{d.Sum}})
		}
		return nil
	})
	return out, err
}

// downloadSums adds what go fetched to the project's go.sum: `go mod download`
// itself does not write all of it.
func downloadSums(docs installer.Documents) ([]byte, error) {
	lines := map[string]bool{}
	for line := range strings.Lines(string(docs[sumFile])) {
		if line = strings.TrimSpace(line); line != "" {
			lines[line] = true
		}
	}
	err := eachDownload(docs[downloadFile], func(d download) error {
		lines[d.Path+" "+d.Version+" "+d.Sum] = true
		lines[d.Path+" "+d.Version+"/go.mod "+d.GoModSum] = true
		return nil
	})
	var b strings.Builder
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(line + "\n")
	}
	return []byte(b.String()), err
}
