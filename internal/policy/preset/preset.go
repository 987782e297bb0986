// Package preset has the names of well-known services, each set of them under one word, and
// what the agents need that use them. All of it stands in presets.yaml. Pure.
package preset

import (
	"bytes"
	_ "embed" // of presets.yaml
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

//go:embed presets.yaml
var text []byte

// Preset is the names of a service.
type Preset struct {
	Name  string      `yaml:"-"`
	Means string      `yaml:"means"` // a few words, to follow "the sandbox can connect to"
	Hosts []yaml.Node `yaml:"hosts"` // entries of a network_allowlist, as a document has them
}

// Agent is a program that works with models, and what it needs in a sandbox.
type Agent struct {
	Name        string            `yaml:"-"`
	Means       string            `yaml:"means"`
	Presets     []string          `yaml:"presets"`
	Environment map[string]string `yaml:"environment"`
	State       []string          `yaml:"state"` // what it keeps, below the home directory
}

// Shipped are the presets and the agents of this version, by their names.
type Shipped struct {
	Presets map[string]Preset `yaml:"presets"`
	Agents  map[string]Agent  `yaml:"agents"`
}

// Read reads presets.yaml. An error is a mistake in that file.
func Read() (Shipped, error) { return parse(text) }

func parse(text []byte) (Shipped, error) {
	var s Shipped
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil {
		return Shipped{}, fmt.Errorf("the presets of this version can't be read: %w", err)
	}
	for name, p := range s.Presets {
		p.Name = name
		s.Presets[name] = p
		if p.Means == "" || len(p.Hosts) == 0 {
			return Shipped{}, fmt.Errorf("the preset %s lacks its meaning or its hosts", name)
		}
	}
	for name, a := range s.Agents {
		a.Name = name
		s.Agents[name] = a
		for _, p := range a.Presets {
			if _, known := s.Presets[p]; !known {
				return Shipped{}, fmt.Errorf("the agent %s needs the preset %s, which is not there", name, p)
			}
		}
	}
	return s, nil
}

// Names are the presets' names, sorted.
func (s Shipped) Names() []string { return slices.Sorted(maps.Keys(s.Presets)) }

// AgentNames are the agents' names, sorted.
func (s Shipped) AgentNames() []string { return slices.Sorted(maps.Keys(s.Agents)) }

// Document is a policy in which an agent reaches what it needs, and installs nothing.
func (a Agent) Document() []byte {
	return []byte("name: " + a.Name + "\npackages: { default: deny }\nnetwork_presets: [ " + strings.Join(a.Presets, ", ") + " ]\n")
}
