package tool

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Set are the tools of an installation, by name. It does not change. A nil Set is empty.
type Set struct{ tools []Tool }

// NewSet takes tools with names of which no two are the same. In the answers of none of them may
// be one of the secrets of any. What sandboxes are told of them is looked through for those that were
// had before: none is fetched for that.
func NewSet(tools []Tool, secrets ...Secrets) (*Set, error) {
	s := &Set{tools: slices.Clone(tools)}
	slices.SortFunc(s.tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	for i, t := range s.tools {
		if err := CheckName(t.Name); err != nil {
			return nil, err
		}
		if i > 0 && s.tools[i-1].Name == t.Name {
			return nil, fault.Invalid("two tools are called %s", t.Name)
		}
		if t.Schema == nil || t.Runner == nil {
			return nil, fault.Invalid("the tool %s has no schema, or nothing that runs it", t.Name)
		}
		s.tools[i].secrets = allSecrets(secrets)
		if s.tools[i].secrets.isInText(t.Name+"\n"+t.Description+"\n"+t.Schema.Text(), false) {
			return nil, fault.Invalid("a secret of a tool is in what sandboxes are told of the tool %d of %d: its name, description or arguments", i+1, len(s.tools))
		}
	}
	return s, nil
}

// allSecrets are the values of several, each once.
func allSecrets(of []Secrets) Secrets {
	return func(fetch bool) (values []string, err error) {
		for _, secrets := range of {
			some, err := secrets(fetch)
			if err != nil {
				return nil, err
			}
			values = append(values, some...)
		}
		slices.Sort(values)
		return slices.Compact(values), nil
	}
}

// Get is a tool by its name; false: there is none.
func (s *Set) Get(name string) (*Tool, bool) {
	if s == nil {
		return nil, false
	}
	i, found := slices.BinarySearchFunc(s.tools, name, func(t Tool, name string) int { return cmp.Compare(t.Name, name) })
	if !found {
		return nil, false
	}
	return &s.tools[i], true
}

// All are the tools in the order of their names.
func (s *Set) All() []Tool {
	if s == nil {
		return nil
	}
	return slices.Clone(s.tools)
}

// Size is a number of bytes for people.
func Size(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
