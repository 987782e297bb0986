package installer

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// MaxChoices bounds the releases of a result.
const MaxChoices = 20_000

// Choice is a release that a resolver chose.
type Choice struct {
	Name    string
	Version string
	Digests []string // "algorithm:<hex>" or "h1:<base64>": any of its files
	File    string   // that would be installed, where the resolver says
	// IfRead tells that it counts only if the resolver read its file in this run.
	IfRead bool
}

// Result is what a resolver says.
type Result struct {
	Ecosystem pkgref.Ecosystem
	Choices   []Choice // by name and version, each once
	Notes     []string
}

// Only reads a result that is one document.
func Only(name string, read func([]byte) (Result, error)) func(Documents) (Result, error) {
	return func(docs Documents) (Result, error) {
		data, given := docs[name]
		if !given {
			return Result{}, fault.Invalid("the resolver ended well and left no %s", name)
		}
		return read(data)
	}
}

// Locked reads a lockfile of that name with the reader that holds installs to it.
func Locked(name string) func([]byte) (Result, error) {
	return func(data []byte) (Result, error) {
		lock, unpinned, err := lockfile.ParseResolved(name, data)
		if err != nil {
			return Result{}, err
		}
		return OfLock(lock, unpinned, nil), nil
	}
}

// OfLock lists a lockfile's releases, each once, but for those that skip names. The unpinned
// ones have no digest.
func OfLock(lock *lockfile.Lockfile, unpinned []pkgref.Ref, skip map[pkgref.Ref]bool) Result {
	out := Result{Ecosystem: lock.Ecosystem}
	for name, pins := range lock.Pins {
		byVersion := map[string]int{}
		for _, pin := range pins {
			if skip[pkgref.Ref{Ecosystem: lock.Ecosystem, Name: name, Version: pin.Version}] || len(pin.Digests) == 0 {
				continue
			}
			at, known := byVersion[pin.Version]
			if !known {
				at = len(out.Choices)
				byVersion[pin.Version] = at
				out.Choices = append(out.Choices, Choice{Name: name, Version: pin.Version})
			}
			for _, d := range pin.Digests {
				if !slices.Contains(out.Choices[at].Digests, d) {
					out.Choices[at].Digests = append(out.Choices[at].Digests, d)
				}
			}
		}
	}
	known := map[pkgref.Ref]bool{}
	for _, c := range out.Choices {
		known[pkgref.Ref{Ecosystem: lock.Ecosystem, Name: c.Name, Version: c.Version}] = true
	}
	for _, ref := range unpinned {
		if !known[ref] && !skip[ref] {
			known[ref] = true
			out.Choices = append(out.Choices, Choice{Name: ref.Name, Version: ref.Version})
		}
	}
	return out
}

// StrongDigest tells a whole digest of an algorithm that nobody can forge.
func StrongDigest(digest string) bool {
	algorithm, hash, _ := strings.Cut(digest, ":")
	if algorithm == "h1" {
		sum, err := base64.StdEncoding.DecodeString(hash)
		return err == nil && len(sum) == 32
	}
	bytes := map[string]int{"sha256": 32, "sha384": 48, "sha512": 64}[algorithm]
	_, err := hex.DecodeString(hash)
	return err == nil && bytes > 0 && len(hash) == 2*bytes && hash == strings.ToLower(hash)
}

// Plural is "1 file" or "2 files".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
