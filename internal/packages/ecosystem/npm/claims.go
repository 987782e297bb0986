package npm

import (
	"bytes"
	"errors"
	"io"
	"path"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// claims are what a manifest or a package.json says of a release, as far as it
// decides something: what it requires, what it runs and what it puts on the PATH.
type claims struct {
	name, version string
	dependencies  map[string]string // name to spec
	optional      map[string]string
	peer          map[string]string
	scripts       []string // those of preinstall, install and postinstall that are there
	installs      bool     // hasInstallScript or gypfile: something runs, whatever scripts say
	noGyp         bool     // gypfile is false
	bins          map[string]string
	binFolder     string // directories.bin
	// wrong says which member has a form that clients read in different ways,
	// or not at all; "" if none has.
	wrong string
}

// claimed tells whether a member is one of those that claims are made of.
func claimed(key string) bool {
	switch key {
	case "name", "version", "dependencies", "optionalDependencies", "peerDependencies", "scripts", "hasInstallScript", "gypfile", "bin", "directories":
		return true
	}
	return false
}

// readMember reads one member.
func (c *claims) readMember(key string, v jsontext.Value) {
	var ok bool
	switch key {
	case "name":
		c.name, ok = stringOf(v)
	case "version":
		c.version, ok = stringOf(v)
	case "dependencies":
		c.dependencies, ok = textMap(v)
	case "optionalDependencies":
		c.optional, ok = textMap(v)
	case "peerDependencies":
		c.peer, ok = textMap(v)
	case "scripts":
		c.scripts, ok = installScripts(v)
	case "hasInstallScript":
		c.installs, ok = c.installs || v.Kind() == 't', true
	case "gypfile":
		c.installs, c.noGyp, ok = c.installs || v.Kind() == 't', v.Kind() == 'f', true
	case "bin":
		c.bins, ok = binsOf(v)
	case "directories":
		c.binFolder, ok = binFolderOf(v)
	}
	if !ok && c.wrong == "" {
		c.wrong = key
	}
}

// runsAtInstall tells whether by these claims something runs at an install.
func (c *claims) runsAtInstall() bool { return c.installs || len(c.scripts) > 0 }

// stringOf is a JSON string's; false for any other value.
func stringOf(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err == nil
}

// saysNothing tells whether a value says nothing: null, false, "", {} and [], which
// old packages have instead of leaving a member out.
func saysNothing(v jsontext.Value) bool {
	switch string(bytes.Join(bytes.Fields(v), nil)) {
	case "null", "false", `""`, "{}", "[]":
		return true
	}
	return false
}

// textMap reads an object whose values are strings.
func textMap(v jsontext.Value) (map[string]string, bool) {
	if v.Kind() != '{' {
		return nil, saysNothing(v)
	}
	m := map[string]string{}
	all := true
	err := eachMember(v, func(key string, value jsontext.Value) {
		s, ok := stringOf(value)
		before, twice := m[key]
		all = all && ok && (!twice || before == s)
		m[key] = s
	})
	return m, err == nil && all
}

// installScripts are the names of the scripts that run at an install.
func installScripts(v jsontext.Value) ([]string, bool) {
	if v.Kind() != '{' {
		return nil, saysNothing(v)
	}
	has := map[string]bool{}
	agree := true
	err := eachMember(v, func(key string, value jsontext.Value) {
		s, ok := stringOf(value)
		runs := ok && s != ""
		before, twice := has[key]
		agree = agree && (!twice || before == runs)
		has[key] = runs
	})
	var names []string
	for _, name := range []string{"preinstall", "install", "postinstall"} {
		if has[name] {
			names = append(names, name)
		}
	}
	return names, err == nil && agree
}

// ownBin is the key of a bin that is a mere path: it is called as the package is.
const ownBin = ""

// binsOf reads a bin: a path, or paths by name. Names and paths are made plain
// as npm does before it links them; what it drops is dropped.
func binsOf(v jsontext.Value) (map[string]string, bool) {
	bins := map[string]string{}
	switch v.Kind() {
	case '"':
		s, ok := stringOf(v)
		if s != "" {
			bins[ownBin] = plainPath(s)
		}
		return bins, ok
	case '{':
		err := eachMember(v, func(key string, value jsontext.Value) {
			if target, ok := stringOf(value); ok && plainPath(key) != "" {
				bins[path.Base(plainPath(key))] = plainPath(target)
			}
		})
		return bins, err == nil
	case '[':
		var paths []string
		if err := json.Unmarshal(v, &paths); err != nil {
			return nil, false
		}
		for _, p := range paths {
			bins[path.Base(plainPath(p))] = plainPath(p)
		}
		return bins, true
	default:
		return nil, saysNothing(v)
	}
}

func binFolderOf(v jsontext.Value) (string, bool) {
	if v.Kind() != '{' {
		return "", saysNothing(v)
	}
	folder := ""
	err := eachMember(v, func(key string, value jsontext.Value) {
		if s, ok := stringOf(value); ok && key == "bin" {
			folder = plainPath(s)
		}
	})
	return folder, err == nil
}

// plainPath is a path inside the package, without "./" and "..".
func plainPath(s string) string {
	s = strings.NewReplacer(`\`, "/", ":", "/").Replace(s)
	return strings.TrimPrefix(path.Clean("/"+s), "/")
}

// looseDecoder reads JSON as JavaScript does: names may come twice, and what is not
// UTF-8 is replaced. A registry's page was read strictly before.
func looseDecoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// eachMember visits an object's members.
func eachMember(v jsontext.Value, visit func(key string, value jsontext.Value)) error {
	return membersOf(looseDecoder(v), visit)
}

func membersOf(dec *jsontext.Decoder, visit func(key string, value jsontext.Value)) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		key, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := key.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		visit(name, value)
	}
	_, err := dec.ReadToken()
	return err
}

// readClaims reads a whole document, a package.json or a manifest. It may be
// written in any way that JavaScript reads (members twice, or not in UTF-8) as
// long as that decides nothing; peculiar tells that it is.
func readClaims(document []byte) (c claims, peculiar bool, err error) {
	document = bytes.TrimPrefix(document, []byte("\xef\xbb\xbf")) // as npm does
	dec := looseDecoder(document)
	if dec.PeekKind() != '{' {
		return c, false, fault.Invalid("its package.json is no JSON object")
	}
	var first claims // by the first of members that come twice; c is by the last
	seen := map[string]bool{}
	err = membersOf(dec, func(name string, v jsontext.Value) {
		if claimed(name) {
			if !seen[name] {
				first.readMember(name, v)
			}
			c.readMember(name, v)
		}
		seen[name] = true
	})
	if err != nil {
		return c, false, fault.Wrap(fault.ErrInvalid, err, "its package.json is no JSON")
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return c, false, fault.Invalid("its package.json goes on after its end")
	}
	if !reflect.DeepEqual(first, c) {
		return c, false, fault.Invalid("its package.json says one thing twice, and not the same: programs differ in what they read")
	}
	return c, !jsontext.Value(document).IsValid(), nil
}
