package lockfile

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Origin is where a lockfile has a package from, if it says so.
type Origin struct {
	Name string // as it stands there
	Line int
	// Registry is its address; "": it comes from a directory, a repository or an address of its own. Of a tarball whose registry does not
	// show in its address, it is that address.
	Registry string
}

// originReader reads where one format has its packages from.
type originReader func(o *origins, root *value) error

// SaysOrigins tells by a file's name whether Origins reads it.
func SaysOrigins(name string) bool {
	read, _ := originsOf(path.Base(name))
	return read != nil
}

// Origins lists where a lockfile has packages from, of which it says so. Its format is told by the last part of its name; of others
// there is nothing. It takes versions that Parse does not. The error is ErrInvalid and reads "name:line: sentence".
func Origins(name string, data []byte) ([]Origin, error) {
	read, parse := originsOf(path.Base(name))
	if read == nil {
		return nil, nil
	}
	o := &origins{b: &builder{name: name}}
	root, err := parse(o.b, data)
	if err == nil {
		err = o.b.object(root, "the document")
	}
	if err == nil {
		err = read(o, root)
	}
	if err == nil && len(o.all) > maxPins {
		err = o.b.wrongLine(o.all[maxPins].Line, "the file has more than %d entries", maxPins)
	}
	return o.all, err
}

type origins struct {
	b   *builder
	all []Origin
}

func (o *origins) addOrigin(name string, line int, registry string) {
	if name != "" && len(o.all) <= maxPins { // Origins says that there are too many
		o.all = append(o.all, Origin{name, line, registry})
	}
}

// textOf is the string at a key; "" if there is none.
func textOf(v *value, key string) string {
	if v.kind != mapping {
		return ""
	}
	if f := v.getItem(key); f != nil && f.kind == textKind {
		return f.text
	}
	return ""
}

// itemsOf are the values of a list or a mapping at a key.
func itemsOf(v *value, key string) []*value {
	if v.kind != mapping {
		return nil
	}
	if f := v.getItem(key); f != nil {
		return f.values
	}
	return nil
}

// readNPM reads versions 2 and 3, and the tree of version 1, which version 2 has too.
func (o *origins) readNPM(root *value) error {
	packages, err := o.b.childOf(root, "packages", mapping)
	if err != nil {
		return err
	}
	if packages != nil {
		for i, place := range packages.keys {
			o.npmEntry(installedAs(place), packages.values[i])
		}
	}
	return o.npmTree(root)
}

func (o *origins) npmTree(of *value) error {
	tree, err := o.b.childOf(of, "dependencies", mapping)
	if err != nil || tree == nil {
		return err
	}
	for i, name := range tree.keys {
		entry := tree.values[i]
		if err := o.b.object(entry, "a package"); err != nil {
			return err
		}
		o.npmEntry(name, entry)
		if err := o.npmTree(entry); err != nil {
			return err
		}
	}
	return nil
}

// npmEntry notes an entry under the name that it is installed by, and the one that its registry has. Version 1 has what comes from no
// registry as its version, and so the other name of an alias.
func (o *origins) npmEntry(name string, entry *value) {
	from, version, own := textOf(entry, "resolved"), textOf(entry, "version"), textOf(entry, "name")
	if alias, is := strings.CutPrefix(version, "npm:"); is {
		own, version, _ = cutLast(alias, "@")
	}
	elsewhere := strings.ContainsAny(version, ":/")
	if from == "" && !elsewhere {
		return
	}
	names := []string{name}
	if own != "" && own != name {
		names = append(names, own)
	}
	registry := ""
	if !elsewhere {
		registry = registryOf(from, names)
	}
	for _, one := range names {
		o.addOrigin(one, entry.line, registry)
	}
}

// cutLast cuts, as strings.Cut does, at the last separator that is not at the begin.
func cutLast(s, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(s, separator); at > 0 {
		return s[:at], s[at+len(separator):], true
	}
	return s, "", false
}

// registryOf is the registry of a tarball's address, which has REGISTRY/NAME/-/FILE in the usual form; "" for what no registry has.
func registryOf(from string, names []string) string {
	if _, web := webPath(from); !web {
		return ""
	}
	from, _, _ = strings.Cut(from, "#")
	unescaped := strings.ReplaceAll(strings.ReplaceAll(from, "%2f", "/"), "%2F", "/")
	for _, name := range names {
		if registry, _, usual := strings.Cut(unescaped, "/"+name+"/-/"); usual {
			return registry
		}
	}
	return from
}

func (o *origins) readPNPM(root *value) error {
	o.pnpmLinks(root)
	packages, err := o.b.childOf(root, "packages", mapping)
	if err != nil || packages == nil {
		return err
	}
	for i, key := range packages.keys {
		entry := packages.values[i]
		if err := o.b.object(entry, "a package"); err != nil {
			return err
		}
		resolution, err := o.b.childOf(entry, "resolution", mapping)
		if err != nil {
			return err
		}
		name, host, err := o.pnpmName(key, entry)
		if err != nil {
			return err
		}
		if resolution == nil {
			resolution = &value{kind: mapping}
		}
		tarball := textOf(resolution, "tarball")
		switch {
		case resolution.getItem("directory") != nil, resolution.getItem("repo") != nil:
			o.addOrigin(name, entry.line, "")
		case textOf(resolution, "registry") != "":
			o.addOrigin(name, entry.line, textOf(resolution, "registry"))
		case host != "": // without its path, so that it is never the one that is asked here
			o.addOrigin(name, entry.line, host)
		case tarball != "":
			o.addOrigin(name, entry.line, registryOf(tarball, []string{name}))
		}
	}
	return nil
}

// pnpmLinks notes the names by which projects have a directory.
func (o *origins) pnpmLinks(root *value) {
	for _, project := range append([]*value{root}, itemsOf(root, "importers")...) {
		for _, key := range []string{"dependencies", "devDependencies", "optionalDependencies"} {
			all := project.getItem(key)
			if all == nil {
				continue
			}
			for i, name := range all.keys {
				version := all.values[i].text // of version 5
				if version == "" {
					version = textOf(all.values[i], "version")
				}
				if strings.HasPrefix(version, "link:") || strings.HasPrefix(version, "file:") {
					o.addOrigin(name, all.values[i].line, "")
				}
			}
		}
	}
}

// pnpmName is the name in a key, and the host of the registry that stands before it in versions before 9: /NAME/VERSION and
// HOST/NAME/VERSION in version 5, /NAME@VERSION and HOST/NAME@VERSION in version 6.
func (o *origins) pnpmName(key string, entry *value) (name, host string, err error) {
	own := textOf(entry, "name")
	if strings.HasPrefix(key, "file:") {
		return own, "", nil
	}
	bare, _, _ := strings.Cut(key, "(")
	first, rest, slash := strings.Cut(bare, "/")
	if slash && first != "" && !strings.Contains(first, "@") {
		host, bare = first, "/"+rest
	}
	if own != "" { // written beside a key with a host
		return own, host, nil
	}
	parts := strings.Split(strings.TrimPrefix(bare, "/"), "/")
	scope := ""
	if strings.HasPrefix(parts[0], "@") && len(parts) > 1 {
		scope, parts = parts[0]+"/", parts[1:]
	}
	name, _, versioned := strings.Cut(parts[0], "@")
	if name == "" || !versioned && len(parts) == 1 {
		return "", "", o.b.wrongLine(entry.line, "%q has no name of a package", text.Shorten(key, maxQuoted))
	}
	return scope + name, host, nil
}

// packages calls a function for each package in a list, with its name.
func (o *origins) packages(root *value, key string, note func(p *value, name string) error) error {
	all, err := o.b.childOf(root, key, list)
	if err != nil || all == nil {
		return err
	}
	for _, p := range all.values {
		if err := o.b.object(p, "a package"); err != nil {
			return err
		}
		name, _, err := o.b.string(p, "name")
		if err == nil && name == "" {
			err = o.b.wrongLine(p.line, "a package has no name")
		}
		if err == nil {
			err = note(p, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addOriginIf notes that a package comes from no registry if it has one of some keys.
func (o *origins) addOriginIf(p *value, name string, keys ...string) {
	if slices.ContainsFunc(keys, func(key string) bool { return p.getItem(key) != nil }) {
		o.addOrigin(name, p.line, "")
	}
}

// readUV reads also what early releases wrote: [[distribution]], and source as "registry+ADDRESS".
func (o *origins) readUV(root *value) error {
	for _, key := range []string{"package", "distribution"} {
		err := o.packages(root, key, func(p *value, name string) error {
			if source := p.getItem("source"); source != nil && source.kind == textKind {
				registry, _ := strings.CutPrefix(source.text, "registry+")
				if registry == source.text {
					registry = ""
				}
				o.addOrigin(name, p.line, registry)
				return nil
			}
			source, err := o.b.childOf(p, "source", mapping)
			if err == nil && source != nil {
				o.addOrigin(name, p.line, textOf(source, "registry"))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *origins) poetry(root *value) error {
	return o.packages(root, "package", func(p *value, name string) error {
		source, err := o.b.childOf(p, "source", mapping)
		if err != nil || source == nil {
			return err // without one it is Poetry's own default
		}
		registry := ""
		if textOf(source, "type") == "legacy" {
			registry = textOf(source, "url")
		}
		o.addOrigin(name, p.line, registry)
		return nil
	})
}

func (o *origins) readPDM(root *value) error {
	return o.packages(root, "package", func(p *value, name string) error {
		o.addOriginIf(p, name, "git", "hg", "svn", "bzr", "path", "url")
		return nil
	})
}

func (o *origins) pylock(root *value) error {
	return o.packages(root, "packages", func(p *value, name string) error {
		if p.getItem("index") != nil {
			o.addOrigin(name, p.line, textOf(p, "index"))
		}
		o.addOriginIf(p, name, "vcs", "directory", "archive")
		return nil
	})
}

// pipfile reads what names the sources that are listed before. A package that names none comes from any of them.
func (o *origins) pipfile(root *value) error {
	sources, all := map[string]string{}, []string{}
	if meta := root.getItem("_meta"); meta != nil {
		for _, s := range itemsOf(meta, "sources") {
			sources[textOf(s, "name")] = textOf(s, "url")
			all = append(all, textOf(s, "url"))
		}
	}
	for i, section := range root.keys {
		if section == "_meta" {
			continue
		}
		if err := o.b.object(root.values[i], "a section"); err != nil {
			return err
		}
		for n, name := range root.values[i].keys {
			if len(o.all) > maxPins {
				return nil // Origins says that there are too many
			}
			o.pipfileEntry(name, root.values[i].values[n], sources, all)
		}
	}
	return nil
}

func (o *origins) pipfileEntry(name string, entry *value, sources map[string]string, all []string) {
	before := len(o.all)
	if entry.kind == mapping {
		o.addOriginIf(entry, name, "git", "hg", "svn", "bzr", "path", "file", "url")
	}
	switch index := textOf(entry, "index"); {
	case index != "":
		o.addOrigin(name, entry.line, sources[index])
	case len(o.all) == before:
		for _, source := range all[:min(len(all), maxPins+1-before)] { // with which Origins says that there are too many
			o.addOrigin(name, entry.line, source)
		}
	}
}

// WithoutAccount is an address as a person may be shown it: without the name and password that may stand in it, and without a query.
func WithoutAccount(address string) string {
	u, err := url.Parse(address)
	account, _, _ := strings.Cut(address, "/")
	if err != nil || u.Opaque != "" || u.Host == "" && strings.Contains(account, "@") {
		return "an address that can't be read"
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment = nil, "", false, ""
	return u.String()
}
