package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// materials is what an architecture's programs are made of, as they tell it
// themselves: the linker writes it into each.
type materials struct {
	version, arch string
	date          time.Time
	programs      []program
	modules       map[string]part // by name@version; Go's own library is std@VERSION
}

// program is one of the release, with the modules in it.
type program struct {
	name, sha256 string
	modules      []string
}

type part struct {
	name, version, sum string // sum is go.sum's
	licence            licence
}

func (s *source) materials(ctx context.Context, arch string, files []string) (*materials, error) {
	m := &materials{version: s.version, arch: arch, date: s.date, modules: map[string]part{}}
	for _, file := range files {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return nil, err
		}
		sum, err := fileSum(file)
		if err != nil {
			return nil, err
		}
		p := program{name: filepath.Base(file), sha256: sum}
		for _, found := range linked(info) {
			key := found.name + "@" + found.version
			p.modules = append(p.modules, key)
			if _, known := m.modules[key]; known {
				continue
			}
			if found.licence, err = s.licenceOf(ctx, file, found); err != nil {
				return nil, err
			}
			m.modules[key] = found
		}
		slices.Sort(p.modules)
		m.programs = append(m.programs, p)
	}
	return m, nil
}

// linked are the modules in a program, and Go's own library.
func linked(info *debug.BuildInfo) []part {
	parts := []part{{name: "std", version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		parts = append(parts, part{name: dep.Path, version: dep.Version, sum: dep.Sum})
	}
	return parts
}

// licenceOf reads a module's licence where the build found the module: it was
// verified against go.sum when it came.
func (s *source) licenceOf(ctx context.Context, file string, p part) (licence, error) {
	if p.name == "std" {
		root, err := goOutput(ctx, s.tree, nil, "env", "GOROOT")
		if err != nil {
			return licence{}, err
		}
		return readLicence("Go", root)
	}
	from := s.tree
	if filepath.Base(file) == "runsc" {
		from = filepath.Join(s.tree, "runsc")
	}
	dir, err := goOutput(ctx, from, nil, "list", "-m", "-f", "{{.Dir}}", p.name)
	if err != nil {
		return licence{}, err
	}
	return readLicence(p.name, dir)
}

// The bill's shape is CycloneDX 1.6.
type (
	bom struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string          `json:"type"`
		Ref        string          `json:"bom-ref"`
		Name       string          `json:"name"`
		Version    string          `json:"version"`
		PURL       string          `json:"purl,omitempty"`
		Hashes     []hash          `json:"hashes,omitempty"`
		Licenses   []licenceChoice `json:"licenses,omitempty"`
		Properties []property      `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	licenceChoice struct {
		License struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

// encodeBill encodes the materials in CycloneDX's JSON.
func (m *materials) encodeBill() ([]byte, error) {
	whole := component{Type: "application", Ref: "release", Name: "cofferdam", Version: m.version, Licenses: choices([]string{"Apache-2.0"})}
	b := bom{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata:     metadata{Timestamp: m.date.Format(time.RFC3339), Component: whole},
		Dependencies: []dependency{{Ref: whole.Ref}},
	}
	for _, p := range m.programs {
		c := component{Type: "application", Ref: "bin/" + p.name, Name: p.name, Version: m.version, Hashes: []hash{{"SHA-256", p.sha256}}}
		c.Properties = []property{{"cofferdam:architecture", m.arch}}
		b.Components = append(b.Components, c)
		b.Dependencies[0].DependsOn = append(b.Dependencies[0].DependsOn, c.Ref)
		deps := dependency{Ref: c.Ref}
		for _, key := range p.modules {
			deps.DependsOn = append(deps.DependsOn, packageURL(m.modules[key]))
		}
		b.Dependencies = append(b.Dependencies, deps)
	}
	for _, key := range m.listKeys() {
		p := m.modules[key]
		c := component{Type: "library", Ref: packageURL(p), Name: p.name, Version: p.version, PURL: packageURL(p), Licenses: choices(p.licence.ids)}
		if p.sum != "" {
			c.Properties = []property{{"cofferdam:go.sum", p.sum}}
		}
		b.Components = append(b.Components, c)
	}
	out, err := json.MarshalIndent(b, "", "  ")
	return append(out, '\n'), err
}

func (m *materials) listKeys() []string {
	var keys []string
	for key := range m.modules {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func packageURL(p part) string {
	return "pkg:golang/" + p.name + "@" + strings.ReplaceAll(p.version, "+", "%2B")
}

func choices(ids []string) []licenceChoice {
	var all []licenceChoice
	for _, id := range ids {
		var c licenceChoice
		c.License.ID = id
		all = append(all, c)
	}
	return all
}
