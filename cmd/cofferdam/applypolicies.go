package main

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// Bounds of what is looked into for policies: whoever was inside chose how many files there are,
// and parsing YAML is slow, about a second for a megabyte. Past a bound each file whose name a
// policy could have is taken for one.
const (
	mostDocuments    = 100_000
	mostParsed       = 8 << 20  // bytes of what the copy has
	mostParsedBefore = 32 << 20 // bytes of what the original has
)

// decidingByContent are the changed files that are, or were, policies: a run may be given any
// of them by a flag, and nothing else says which. A link with a policy's name is one whatever it
// leads to, which may still be written. A text under another name counts if it was a policy.
func decidingByContent(w *workspace.Workspace, changes []workspace.Change) []string {
	before, after := policySearch{bytes: mostParsedBefore}, policySearch{bytes: mostParsed}
	removed := map[string]bool{}
	var all []string
	for i, c := range changes {
		likely := hasPolicyName(c.Path)
		switch {
		case c.Kind == workspace.Dir && c.How == workspace.Removed:
			removed[c.Path] = true
		case c.Kind == workspace.Link && likely, likely && i >= mostDocuments:
			all = append(all, c.Path)
		case c.Kind == workspace.File && (likely || c.How != workspace.Added):
			old, young := w.Texts(c.Path, maxPolicy)
			if before.isPolicy(old, likely) || likely && after.isPolicy(young, true) {
				all = append(all, c.Path)
			}
		}
	}
	if len(removed) == 0 {
		return all
	}
	for name := range w.Listed() {
		if !hasPolicyName(name) || !isUnder(removed, name) {
			continue
		}
		if old, _ := w.Texts(name, maxPolicy); before.isPolicy(old, true) {
			all = append(all, name)
		}
	}
	return all
}

// isUnder tells whether a path is below one of some directories.
func isUnder(dirs map[string]bool, name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if dirs[dir] {
			return true
		}
	}
	return false
}

// hasPolicyName tells whether a path ends as those of policies do.
func hasPolicyName(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// policySearch looks for policies among texts, as long as there are bytes left to be parsed.
type policySearch struct{ bytes int }

// isPolicy tells whether a text is a policy. Of one that would have to be parsed and is not, it tells
// what is believed of it.
func (s *policySearch) isPolicy(text []byte, believed bool) bool {
	if len(text) == 0 || isOtherJSON(text) {
		return false
	}
	if s.bytes < len(text) {
		return believed
	}
	s.bytes -= len(text)
	return isPolicy(text)
}

// isOtherJSON tells of JSON that it is no policy, in a fraction of the time that parsing it as
// YAML takes: it is no object, or has a key that no policy has.
func isOtherJSON(text []byte) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal(text, &keys) != nil {
		return json.Valid(text)
	}
	known := policy.Keys()
	for key := range keys {
		if !slices.Contains(known, key) {
			return true
		}
	}
	return false
}

// isPolicy tells whether a text is a policy that says more than what it is called.
func isPolicy(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	if _, err := policy.Parse("", text); err != nil {
		return false // no run could be given it
	}
	var keys map[string]yaml.Node
	if err := yaml.Unmarshal(text, &keys); err != nil {
		return true // a run could be given it, whatever this says of it
	}
	for key := range keys {
		switch key {
		case "name", "version", "description", "metadata", "disclaimer", "inherit", "scope": // for people only
		default:
			return true
		}
	}
	return false
}
