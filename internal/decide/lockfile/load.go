package lockfile

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// MaxTotal bounds the bytes of all lockfiles of a run.
const MaxTotal = 32 << 20

// Given is what a run was given: the lockfiles as they are, and the rules that
// they are under.
type Given struct {
	Mode    policy.LockMode `json:"mode"`
	Trust   bool            `json:"trust"`
	Sources []Source        `json:"sources"`
}

// Give puts a document's rules and the lockfiles of a run together. document is
// the policy's absolute path, "" if it has none; mode "" is the document's.
// Every file that the document names must be there, and a document that speaks
// of lockfiles needs one. nil: the run has none, and needs none.
func Give(document string, rules policy.LockRules, mode policy.LockMode, sources []Source) (*Given, error) {
	switch mode {
	case "", policy.LockFrozen, policy.LockPrefer:
	default:
		return nil, unknownMode(mode)
	}
	for _, file := range rules.Files {
		if !slices.ContainsFunc(sources, func(s Source) bool { return s.Name == Path(document, file) }) {
			return nil, fault.Invalid("the policy names the lockfile %s, but it was not given", file)
		}
	}
	if len(sources) == 0 {
		switch {
		case !rules.Given && mode == "":
			return nil, nil //nolint:nilnil // no lockfiles is a good answer
		case !rules.Given:
			return nil, fault.Invalid("a mode of lockfiles is given (%s), but no lockfile: give one with --lockfile", mode)
		}
		return nil, fault.Invalid("the policy holds installations to lockfiles, but names none: give one with --lockfile, or name them in packages.lockfile.files")
	}
	g := &Given{Mode: rules.Mode, Trust: rules.Trust, Sources: sources}
	if g.Mode == "" {
		g.Mode = policy.LockFrozen
	}
	if mode == "" {
		return g, nil
	}
	if rules.Given && g.Mode == policy.LockFrozen && mode != policy.LockFrozen {
		return nil, fault.New(fault.ErrForbidden, "the policy's mode of lockfiles is frozen; a run can't loosen it to %s", mode)
	}
	g.Mode = mode
	return g, nil
}

// Path is where a lockfile is that a document names.
func Path(document, file string) string {
	if filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(filepath.Dir(document), file)
}

// Set reads the lockfiles.
func (g *Given) Set() (*Set, error) {
	total := 0
	for _, s := range g.Sources {
		total += len(s.Data)
	}
	if total > MaxTotal || len(g.Sources) > MaxFiles {
		return nil, fault.Invalid("the lockfiles are %d files of %d bytes together; a run can have %d of %d", len(g.Sources), total, MaxFiles, MaxTotal)
	}
	files := make([]*Lockfile, 0, len(g.Sources))
	for _, s := range g.Sources {
		f, err := Parse(s.Name, s.Data)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return NewSet(policy.LockRules{Mode: g.Mode, Trust: g.Trust}, files)
}

// KeptBytes is about how many bytes Encode writes: the lockfiles are in it in base64.
func (g *Given) KeptBytes() int64 {
	n := int64(0)
	for _, s := range g.Sources {
		n += int64(len(s.Name)) + int64(base64.StdEncoding.EncodedLen(len(s.Data)))
	}
	return n
}

// Encode writes what was given, for Decode.
func (g *Given) Encode() ([]byte, error) { return json.Marshal(g) }

// Decode reads what Encode wrote, and the lockfiles in it.
func Decode(data []byte) (*Set, error) {
	var g Given
	if err := json.Unmarshal(data, &g); err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the kept lockfiles can't be read")
	}
	return g.Set()
}
