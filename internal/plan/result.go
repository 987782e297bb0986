package plan

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// maxChoices bounds the releases of a result.
const maxChoices = 20_000

// Result is what a resolver says.
type Result struct {
	Ecosystem pkgref.Ecosystem
	Choices   []api.PlanChoice // by name and version, each once
	Notes     []string
}

// Read reads a client's result.
func Read(client Client, docs Documents) (Result, error) {
	out, err := read(client, docs)
	if err != nil {
		return Result{}, err
	}
	if len(out.Choices) > maxChoices {
		return Result{}, fault.Invalid("the resolver names %d releases; a plan has at most %d", len(out.Choices), maxChoices)
	}
	slices.SortFunc(out.Choices, func(a, b api.PlanChoice) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return out, nil
}

func read(client Client, docs Documents) (Result, error) {
	switch client {
	case Pip:
		return readOf(docs, frameReport, readReport)
	case UVPip, UVProject:
		return readOf(docs, frameRequirements, locked(frameRequirements))
	case NPM:
		return readOf(docs, framePackageLock, readNPM)
	case PNPM:
		return readOf(docs, framePnpmLock, locked(framePnpmLock))
	case GoGet:
		return readGoSum(docs)
	case GoModules:
		return readOf(docs, frameDownloads, readDownloads)
	}
	return Result{}, fault.Invalid("there is no client %q", string(client))
}

func readOf(docs Documents, name string, read func([]byte) (Result, error)) (Result, error) {
	data, given := docs[name]
	if !given {
		return Result{}, fault.Invalid("the resolver ended well and left no %s", name)
	}
	return read(data)
}

// locked reads a lockfile with the reader that holds installs to it.
func locked(name string) func([]byte) (Result, error) {
	return func(data []byte) (Result, error) {
		lock, err := lockfile.Parse(name, data)
		if err != nil {
			return Result{}, err
		}
		return ofLock(lock, nil), nil
	}
}

// ofLock lists a lockfile's releases, each once, but for those that skip names.
func ofLock(lock *lockfile.Lockfile, skip map[pkgref.Ref]bool) Result {
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
				out.Choices = append(out.Choices, api.PlanChoice{Name: name, Version: pin.Version})
			}
			for _, d := range pin.Digests {
				if !slices.Contains(out.Choices[at].Digests, d) {
					out.Choices[at].Digests = append(out.Choices[at].Digests, d)
				}
			}
		}
	}
	return out
}

// readNPM reads package-lock.json and leaves out what npm does not install on
// this machine: optional packages for other systems.
func readNPM(data []byte) (Result, error) {
	lock, err := lockfile.Parse(framePackageLock, data)
	if err != nil {
		return Result{}, err
	}
	var packages struct {
		Packages map[string]struct {
			Name     string   `json:"name"`
			Version  string   `json:"version"`
			OS       []string `json:"os"`
			CPU      []string `json:"cpu"`
			Optional bool     `json:"optional"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(data, &packages); err != nil {
		return Result{}, fault.Wrap(fault.ErrInvalid, err, "%s can't be read", framePackageLock)
	}
	here, elsewhere := map[pkgref.Ref]bool{}, map[pkgref.Ref]bool{}
	for place, p := range packages.Packages {
		name := p.Name
		if i := strings.LastIndex(place, "node_modules/"); i >= 0 && name == "" {
			name = place[i+len("node_modules/"):]
		}
		ref := pkgref.Ref{Ecosystem: pkgref.Node, Name: name, Version: p.Version}
		if p.Optional && (!runsOn(p.OS, "linux") || !runsOn(p.CPU, nodeArch())) {
			elsewhere[ref] = true
		} else {
			here[ref] = true
		}
	}
	for ref := range here {
		delete(elsewhere, ref)
	}
	out := ofLock(lock, elsewhere)
	if len(elsewhere) > 0 {
		out.Notes = append(out.Notes, plural(len(elsewhere), "optional package")+" of the lockfile for other systems: npm does not install them here")
	}
	return out, nil
}

// runsOn reads npm's lists of systems: names, or names that are not meant.
func runsOn(list []string, own string) bool {
	positive := false
	for _, entry := range list {
		not, negated := strings.CutPrefix(entry, "!")
		if negated && not == own {
			return false
		}
		positive = positive || !negated
	}
	return !positive || slices.Contains(list, own) || slices.Contains(list, "any")
}

func nodeArch() string {
	if runtime.GOARCH == "amd64" {
		return "x64"
	}
	return runtime.GOARCH
}

// readGoSum takes the modules of go.sum. Lines that were there before count only
// if their module was fetched now.
func readGoSum(docs Documents) (Result, error) {
	out := Result{Ecosystem: pkgref.Go}
	data, given := docs[frameGoSum]
	if !given || len(bytes.TrimSpace(data)) == 0 {
		out.Notes = append(out.Notes, "go needs no module for this")
		return out, nil
	}
	lock, err := lockfile.Parse(frameGoSum, data)
	if err != nil {
		return Result{}, err
	}
	before := map[string]bool{}
	if old := docs[frameGoSumBefore]; len(bytes.TrimSpace(old)) > 0 {
		was, err := lockfile.Parse(frameGoSum, old)
		if err != nil {
			return Result{}, err
		}
		for _, c := range ofLock(was, nil).Choices {
			before[c.Name+" "+c.Version] = true
		}
	}
	out = ofLock(lock, nil)
	for i, c := range out.Choices {
		out.Choices[i].IfRead = before[c.Name+" "+c.Version]
	}
	return out, nil
}

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
	for range maxChoices {
		var d download
		err := json.UnmarshalDecode(dec, &d)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fault.Wrap(fault.ErrInvalid, err, "what go says of its downloads can't be read")
		}
		if !strongDigest(d.Sum) || !strongDigest(d.GoModSum) || strings.ContainsAny(d.Path+d.Version, " \t\r\n") {
			return fault.Invalid("go says nothing of the hashes of %s %s", clip(d.Path), clip(d.Version))
		}
		if err := do(d); err != nil {
			return err
		}
	}
	return fault.Invalid("go names more than %d modules", maxChoices)
}

func readDownloads(data []byte) (Result, error) {
	out := Result{Ecosystem: pkgref.Go}
	err := eachDownload(data, func(d download) error {
		ref, err := pkgref.New(pkgref.Go, d.Path, d.Version)
		if err != nil || ref.Version == "" {
			return fault.Invalid("go names %q %q, which is no module's release", clip(d.Path), clip(d.Version))
		}
		if !slices.ContainsFunc(out.Choices, func(c api.PlanChoice) bool { return c.Name == ref.Name && c.Version == ref.Version }) {
			out.Choices = append(out.Choices, api.PlanChoice{Name: ref.Name, Version: ref.Version, Digests: []string{d.Sum}})
		}
		return nil
	})
	return out, err
}

// strongDigest tells a whole digest of an algorithm that nobody can forge.
func strongDigest(digest string) bool {
	algorithm, hash, _ := strings.Cut(digest, ":")
	if algorithm == "h1" {
		sum, err := base64.StdEncoding.DecodeString(hash)
		return err == nil && len(sum) == 32
	}
	bytes := map[string]int{"sha256": 32, "sha384": 48, "sha512": 64}[algorithm]
	_, err := hex.DecodeString(hash)
	return err == nil && bytes > 0 && len(hash) == 2*bytes && hash == strings.ToLower(hash)
}
