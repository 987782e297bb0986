package project

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// Lead is a path of the settings, or of a mount of their policy, that leads through links.
type Lead struct {
	Path string `json:"path"` // as the settings or the policy have it
	To   string `json:"to"`   // absolute, without links
}

// listLeads lists where a project's paths lead that do not lie where they seem to. A person who
// allows the project allows these places: a link that an agent puts there later leads elsewhere,
// and is not allowed. A path to nothing leads nowhere, so that a link in its place is new.
func (p *Project) listLeads() ([]Lead, error) {
	s := p.Settings
	paths := slices.Concat([]string{s.Policy}, s.Lockfiles)
	for _, m := range s.Mounts {
		source, _, _ := SplitMount(m)
		paths = append(paths, source)
	}
	if p.Policy != nil {
		// A policy that is wrong mounts nothing: no run is made by it.
		if parsed, err := policy.Parse(p.Inside(s.Policy), p.Policy); err == nil {
			for _, m := range parsed.Mounts() {
				paths = append(paths, m.Source)
			}
		}
	}
	var all []Lead
	for _, path := range paths {
		if path == "" {
			continue
		}
		at := filepath.Clean(p.Inside(path))
		if !filepath.IsAbs(at) {
			continue // a name of something else
		}
		to, links, err := hostpath.Links(at)
		if errors.Is(err, fs.ErrNotExist) && len(links) == 0 {
			continue
		}
		if err != nil {
			return nil, fault.Invalid("%s names %s, which can't be followed: %v", p.Path(), path, err)
		}
		if lead := (Lead{Path: path, To: to}); to != at && !slices.Contains(all, lead) {
			all = append(all, lead)
		}
	}
	return all, nil
}

// SplitMount reads a mount as people write it, SOURCE:DESTINATION[:rw|:ro]. A source may hold
// colons, a destination may not; without a destination all of it is the source.
func SplitMount(spec string) (source, destination string, readWrite bool) {
	rest, readWrite := strings.CutSuffix(spec, ":rw")
	if !readWrite {
		rest = strings.TrimSuffix(rest, ":ro")
	}
	colon := strings.LastIndexByte(rest, ':')
	if colon < 0 {
		return rest, "", readWrite
	}
	return rest[:colon], rest[colon+1:], readWrite
}

// leadsText is what of the leads is in the digest.
func leadsText(all []Lead) []byte {
	var text strings.Builder
	for _, l := range all {
		text.WriteString(l.Path + "\x00" + l.To + "\x00")
	}
	return []byte(text.String())
}
