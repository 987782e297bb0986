package config

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConfigurationPage: docs/configuration.md has every key of the configuration file
// with what its comment says. COFFERDAM_UPDATE=1 writes it anew.
func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	m := manual{t: t, types: typesOfThisPackage(t)}
	m.page.WriteString(`# The configuration file

Made from the types of internal/serve/config by a test of that package; COFFERDAM_UPDATE=1 writes it anew.

It is ` + "`config.yaml`" + ` in the state directory (/var/lib/cofferdam for root, ~/.local/state/cofferdam for others, or COFFERDAM_STATE), or, of root's
in /var/lib/cofferdam alone, /etc/cofferdam/config.yaml; two of these are refused. COFFERDAM_CONFIG names another instead, which must be there. It belongs to root or to
the daemon's user, and nobody else may write to it or to a directory on its way. There need be none: every key has a default. A mistake in it is told with its line and column. A key that does not exist is an error, and so is a number that is 0 where that would be as if it were not there.

A daemon reads it when it starts, and again when you say ` + "`cofferdam reload`" + `. The last column says which keys count from then on (*reload*; the pool within 15 seconds, and
those who were promised more than ` + "`overcommit`" + ` allows now keep it), and which from the daemon's next start (*start*), which ends no sandbox. Flags of ` + "`cofferdam serve`" + `
go before the file. Of a file that is wrong nothing is taken, and the old settings stay. The audit log has each reload: by whom, which keys changed, the file's digest. ` + "`cofferdam serve --check`" + ` looks at the file
and says what is wrong, without starting anything. What must not be readable by others is said in [operations.md](operations.md).
`)
	m.section("", reflect.TypeFor[Config]())
	path := filepath.Join("..", "..", "..", "docs", "configuration.md")
	if os.Getenv("COFFERDAM_UPDATE") != "" {
		if err := os.WriteFile(path, m.page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), m.page.String()); diff != "" {
		t.Errorf("docs/configuration.md is not what the types say; COFFERDAM_UPDATE=1 writes it:\n%s", diff)
	}
}

// manual writes the page.
type manual struct {
	t     *testing.T
	types map[string]*ast.TypeSpec
	page  bytes.Buffer
}

// counts says from when a key counts.
func counts(key string) string {
	listed := func(l string) bool {
		return key == l || strings.HasPrefix(key, l+".") || strings.HasPrefix(key, l+"[]")
	}
	switch {
	case slices.ContainsFunc(Reloaded(), listed):
		return "reload"
	case slices.ContainsFunc(AtStart(), listed):
		return "start"
	}
	return "" // its parts differ
}

// section writes a table of a struct's keys, then those of the structs in it.
func (m *manual) section(prefix string, of reflect.Type) {
	title := "All keys"
	if prefix != "" {
		title = "`" + strings.TrimSuffix(prefix, ".") + "`"
	}
	fmt.Fprintf(&m.page, "\n## %s\n\n", title)
	if about := m.about(of.Name()); prefix != "" && about != "" {
		fmt.Fprintf(&m.page, "%s%s\n\n", strings.ToUpper(about[:1]), about[1:])
	}
	m.page.WriteString("| key | value | what it is | from |\n| --- | --- | --- | --- |\n")
	words := m.comments(of)
	for f := range of.Fields() {
		key := f.Tag.Get("yaml")
		if key == "" || words[f.Name] == "" {
			m.t.Errorf("%s.%s has no key or no comment that says what it is", of.Name(), f.Name)
		}
		fmt.Fprintf(&m.page, "| `%s%s` | %s | %s | %s |\n", prefix, key, kind(f.Type), m.plain(of, words[f.Name]), counts(prefix+key))
	}
	for f := range of.Fields() {
		switch inner := element(f.Type); {
		case inner == reflect.TypeFor[TLS]():
		case inner.Kind() == reflect.Struct && f.Type.Kind() == reflect.Slice:
			m.section(prefix+f.Tag.Get("yaml")+"[].", inner)
		case inner.Kind() == reflect.Struct:
			m.section(prefix+f.Tag.Get("yaml")+".", inner)
		}
	}
}

// element is the type in a list, or behind a pointer.
func element(of reflect.Type) reflect.Type {
	if of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
		return of.Elem()
	}
	return of
}

// kind says how a value is written.
func kind(of reflect.Type) string {
	switch of {
	case reflect.TypeFor[Duration]():
		return "a duration: `90s`, `5m`"
	case reflect.TypeFor[Span]():
		return "a time: `12h`, `7d`"
	case reflect.TypeFor[Bytes]():
		return "a size: `512MiB`, `20GiB`"
	case reflect.TypeFor[Schema]():
		return "a JSON Schema, as YAML"
	case reflect.TypeFor[TLS]():
		return "`auto`, or `{ cert_file, key_file }`"
	}
	if of.Kind() == reflect.Pointer {
		return kind(of.Elem())
	}
	if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct {
		return "a list of maps"
	}
	return map[reflect.Kind]string{
		reflect.Slice: "a list of texts", reflect.Map: "a map of texts", reflect.Struct: "a map", reflect.String: "a text",
		reflect.Bool: "`true` or `false`", reflect.Int: "a number", reflect.Float64: "a number",
	}[of.Kind()]
}

// about is the comment of a type, without its name at the beginning.
func (m *manual) about(name string) string {
	spec := m.types[name]
	if spec == nil || spec.Doc == nil {
		return ""
	}
	return sentence(name, spec.Doc.Text())
}

// comments are what is said of each field: by its own comment, or by that of the field
// before it, from the place where the field is named on.
func (m *manual) comments(of reflect.Type) map[string]string {
	words := map[string]string{}
	spec := m.types[of.Name()]
	if spec == nil {
		m.t.Fatalf("no type %s in the source", of.Name())
	}
	var names []string
	for f := range of.Fields() {
		names = append(names, f.Name)
	}
	beginning := regexp.MustCompile(`(?:^|[.;] )(` + strings.Join(names, "|") + `)(?: is| are| has| stays|,|:| \(| go)`)
	for _, f := range spec.Type.(*ast.StructType).Fields.List {
		name := f.Names[0].Name
		if f.Comment != nil {
			words[name] = strings.Join(strings.Fields(f.Comment.Text()), " ")
		}
		if f.Doc == nil {
			continue
		}
		text := strings.Join(strings.Fields(f.Doc.Text()), " ")
		found := beginning.FindAllStringSubmatchIndex(text, -1)
		for i, at := range found {
			end := len(text)
			if i+1 < len(found) {
				end = found[i+1][2]
			}
			named := text[at[2]:at[3]]
			words[named] = strings.TrimSpace(strings.Join([]string{words[named], sentence(named, strings.TrimSpace(text[at[2]:end]))}, " "))
		}
		if len(found) == 0 {
			words[name] = text
		}
	}
	return words
}

// sentence leaves out a name and its verb.
func sentence(name, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, verb := range []string{" is ", " are ", ": "} {
		if rest, ok := strings.CutPrefix(text, name+verb); ok {
			return rest
		}
	}
	return text
}

// plain writes a comment for who knows only keys: fields by their keys, and a table's
// cell in one line.
func (m *manual) plain(of reflect.Type, text string) string {
	for f := range of.Fields() {
		text = regexp.MustCompile(`\b`+f.Name+`\b`).ReplaceAllString(text, "`"+f.Tag.Get("yaml")+"`")
	}
	return strings.ReplaceAll(strings.TrimRight(text, ".;"), "|", "\\|")
}

// typesOfThisPackage are the declared types with their comments.
func typesOfThisPackage(t *testing.T) map[string]*ast.TypeSpec {
	t.Helper()
	types := map[string]*ast.TypeSpec{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				if named, ok := spec.(*ast.TypeSpec); ok {
					if named.Doc == nil {
						named.Doc = group.Doc
					}
					types[named.Name.Name] = named
				}
			}
		}
	}
	return types
}
