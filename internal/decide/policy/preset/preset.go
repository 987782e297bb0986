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
	Key   *Key        `yaml:"key"`   // nil: no key of its API is known here
}

// Key is how a service's API takes one. The hosts of such a preset are plain names.
type Key struct {
	Variable    string `yaml:"variable"`    // in which programs look for it
	Placeholder string `yaml:"placeholder"` // the form of what they accept
	Header      string `yaml:"header"`      // in which they send it
}

// HostNames are a preset's hosts, of a preset with a key.
func (p Preset) HostNames() []string {
	var names []string
	for _, h := range p.Hosts {
		names = append(names, h.Value)
	}
	return names
}

// Agent is a program that works with models, and what it needs in a sandbox.
type Agent struct {
	Name        string            `yaml:"-"`
	Means       string            `yaml:"means"`
	Presets     []string          `yaml:"presets"`
	Environment map[string]string `yaml:"environment"`
	// Keys are the presets whose keys it can use, each with the variable in which it looks
	// for that.
	Keys  map[string]string `yaml:"keys"`
	State []string          `yaml:"state"` // the directories that it keeps, below the home directory
	// Settings are variables for paths of it, below the home directory.
	Settings map[string]string `yaml:"settings"`
}

// Shipped are the presets and the agents of this version, by their names.
type Shipped struct {
	Presets map[string]Preset `yaml:"presets"`
	Agents  map[string]Agent  `yaml:"agents"`
}

// Read reads presets.yaml. An error is a mistake in that file.
func Read() (Shipped, error) { return parsePreset(text) }

func parsePreset(text []byte) (Shipped, error) {
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
		if err := p.checkKey(); err != nil {
			return Shipped{}, err
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
		for p := range a.Keys {
			if s.Presets[p].Key == nil {
				return Shipped{}, fmt.Errorf("the agent %s has a key of the preset %s, which has none", name, p)
			}
		}
	}
	return s, nil
}

// checkKey refuses a key that says too little, or that is for hosts which are no plain names.
func (p Preset) checkKey() error {
	if p.Key == nil {
		return nil
	}
	if p.Key.Variable == "" || p.Key.Placeholder == "" || p.Key.Header == "" {
		return fmt.Errorf("the key of the preset %s lacks its variable, its placeholder or its header", p.Name)
	}
	for _, h := range p.Hosts {
		if h.Kind != yaml.ScalarNode || strings.ContainsAny(h.Value, "*:") {
			return fmt.Errorf("the preset %s has a key, and a host that is no plain name", p.Name)
		}
	}
	return nil
}

// Names are the presets' names, sorted.
func (s Shipped) Names() []string { return slices.Sorted(maps.Keys(s.Presets)) }

// WithKeys are the names of the presets with a key, sorted.
func (s Shipped) WithKeys() []string {
	return slices.DeleteFunc(s.Names(), func(name string) bool { return s.Presets[name].Key == nil })
}

// AgentNames are the agents' names, sorted.
func (s Shipped) AgentNames() []string { return slices.Sorted(maps.Keys(s.Agents)) }

// Document is a policy in which an agent reaches what it needs, and installs nothing. Of
// its keys it has those of the given presets: the sandbox holds placeholders of the secrets
// that are called like them.
func (a Agent) Document(s Shipped, keys []string) []byte {
	open := slices.Clone(a.Presets)
	var inject []string
	for _, key := range slices.Sorted(maps.Keys(a.Keys)) {
		if !slices.Contains(keys, key) {
			continue
		}
		if !slices.Contains(open, key) {
			open = append(open, key)
		}
		for _, host := range s.Presets[key].HostNames() {
			inject = append(inject, fmt.Sprintf("    - { host: %s, secret: %s, env: %s }\n", host, key, a.Keys[key]))
		}
	}
	text := "name: " + a.Name + "\npackages: { default: deny }\nnetwork_presets: [ " + strings.Join(open, ", ") + " ]\n"
	if len(inject) > 0 {
		text += "credentials:\n  mode: just_in_time\n  inject:\n" + strings.Join(inject, "")
	}
	return []byte(text)
}
