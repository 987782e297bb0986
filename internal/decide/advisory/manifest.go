package advisory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Kind is what a source brings.
type Kind string

// The kinds.
const (
	KindMalware Kind = "malware" // OSV records: malware, and vulnerabilities
	KindPopular Kind = "popular"
)

// source is one line of the manifest: what one label imported last.
type source struct {
	Label      string                   `json:"label"`
	Kind       Kind                     `json:"kind"`
	Path       string                   `json:"path"`     // what was imported
	Imported   time.Time                `json:"imported"` // UTC
	File       string                   `json:"file"`     // in the database's directory
	SHA256     string                   `json:"sha256"`   // of File, hex
	Bytes      int64                    `json:"bytes"`
	Advisories int                      `json:"advisories,omitempty"`
	Burnt      int                      `json:"burnt,omitempty"`
	Packages   map[pkgref.Ecosystem]int `json:"packages"` // with malware, or of a list
	// Vulnerabilities and the packages that have them; none in what was imported before they
	// were kept.
	Vulnerabilities int                      `json:"vulnerabilities,omitempty"`
	Vulnerable      map[pkgref.Ecosystem]int `json:"vulnerable,omitempty"`
	LeftOut         int                      `json:"left_out,omitempty"` // records that could not be read
}

// manifest lists the sources of a database. It is the one file whose
// replacement makes an import count.
type manifest struct {
	Sources []source `json:"sources"` // sorted by label
}

const (
	manifestName   = "manifest"
	manifestHeader = "cofferdam advisories 1 sha256:"
	maxManifest    = 1 << 20
	maxSources     = 64
)

func (m manifest) encode() ([]byte, error) {
	body, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	return fmt.Appendf(nil, "%s%x\n%s", manifestHeader, sha256.Sum256(body), body), nil
}

// readManifest reads the list of sources; an absent one is empty, unless there
// are tables, which then are of nobody knows what.
func readManifest(dir string) (manifest, error) {
	data, err := readFile(filepath.Join(dir, manifestName), maxManifest)
	if errors.Is(err, os.ErrNotExist) {
		for _, left := range orphans(dir, manifest{}) {
			if strings.HasSuffix(left, tableSuffix) {
				return manifest{}, fault.New(fault.ErrUnavailable, "the list of sources in %s is gone, but %s is there", dir, left)
			}
		}
		return manifest{}, nil
	}
	if err != nil {
		return manifest{}, fault.Wrap(fault.ErrUnavailable, err, "the list of sources can't be read")
	}
	head, body, _ := bytes.Cut(data, []byte("\n"))
	sum := sha256.Sum256(body)
	var m manifest
	if string(head) != manifestHeader+hex.EncodeToString(sum[:]) || json.Unmarshal(body, &m) != nil {
		return manifest{}, fault.New(fault.ErrUnavailable, "the list of sources %s is damaged", filepath.Join(dir, manifestName))
	}
	return m, nil
}

func (m manifest) findSource(label string) (source, bool) {
	i := slices.IndexFunc(m.Sources, func(s source) bool { return s.Label == label })
	if i < 0 {
		return source{}, false
	}
	return m.Sources[i], true
}

// withSource is the manifest with a source in the place of the one of its label.
func (m manifest) withSource(s source) manifest {
	m = m.withoutSource(s.Label)
	m.Sources = append(m.Sources, s)
	slices.SortFunc(m.Sources, func(a, b source) int { return strings.Compare(a.Label, b.Label) })
	return m
}

func (m manifest) withoutSource(label string) manifest {
	return manifest{Sources: slices.DeleteFunc(slices.Clone(m.Sources), func(s source) bool { return s.Label == label })}
}

// tableSuffix ends the names of what the manifest's sources keep.
const tableSuffix = ".facts"

// orphans are files of the database that the manifest does not list: of an
// import that did not end, or that was replaced.
func orphans(dir string, m manifest) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // what can't be listed can't be taken away either
	}
	var left []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), newSuffix)
		listed := slices.ContainsFunc(m.Sources, func(s source) bool { return s.File == e.Name() })
		if strings.HasSuffix(name, tableSuffix) && !listed {
			left = append(left, e.Name())
		}
	}
	return left
}

// readFile reads a file of the database whole.
func readFile(path string, most int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fault.Invalid("%s is larger than %d bytes", path, most)
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, err
	}
	return data, nil
}

// digest is the hex sha256 of data.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
