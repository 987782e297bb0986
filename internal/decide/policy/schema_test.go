package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestSchemaIsCommitted: api/policy.schema.json is what the types say.
// COFFERDAM_UPDATE=1 writes it anew.
func TestSchemaIsCommitted(t *testing.T) {
	t.Parallel()
	want, err := policy.Schema()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "..", "api", "policy.schema.json")
	if os.Getenv("COFFERDAM_UPDATE") != "" {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), string(want)); diff != "" {
		t.Errorf("api/policy.schema.json is not what the types say; COFFERDAM_UPDATE=1 writes it:\n%s", diff)
	}
}

// TestSchemaTakesWhatParseReads: every example of the repository, and what is written in
// two ways, is in order for an editor, too.
func TestSchemaTakesWhatParseReads(t *testing.T) {
	t.Parallel()
	documents := examples(t)
	demo, err := os.ReadFile("../../../examples/demo/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents["demo"] = demo
	for i, block := range pageExamples(t) {
		documents[fmt.Sprint("docs/policy.md ", i)] = []byte(block)
	}
	for _, one := range []string{
		"{}",
		"published_ports: [80, \"3000-3010\"]",
		"packages: { on_hold: freeze, min_release_age: 1d12h, age_source: first-seen, unaccounted: end, similar_names: hold }",
		"packages: { lockfile: { files: [a/pylock.dev.toml, /x/go.work.sum, requirements.txt] } }",
		"resources: { cpu_limit: 2, memory_limit: 512Mi }",
		"defaults: { max_cpu: null, timeout_seconds: 0.5 }",
		"sandbox_mounts: { input_dir: /data, output_dir: null }",
		"{ description: \"\", inherit: true, scope: null }",
		"{ metadata: { regulation: \"An Act\", of: [2016, { part: 1 }] }, disclaimer: \"\" }",
		"rules: [ { name: a, condition: { field: command, operator: in, value: [ls, cat] }, action: audit, message: \"\", dynamic_condition: null, override: false } ]",
		"environment: { mode: persistent, baseline: first }",
		"network_allowlist: [ a.example, { host: \"*.a.example\" }, { host: a.example, port: 22, tcp: true } ]",
		"network_proxy: true",
		"network_allowlist: [ { host: a.example, methods: [GET, M-SEARCH], paths: [\"/**\", \"/a/*.json\"], max_body: 64kB, deny_patterns: [\"x+\"] }, { host: b.example, max_body: 0 }, { host: c.example, max_body: 2MiB } ]",
	} {
		documents[one] = []byte(one)
	}
	schema := compiledSchema(t)
	for name, data := range documents {
		if _, err := policy.Parse(name, data); err != nil {
			t.Errorf("the policy reads it no more: %v", err)
		}
		if err := schema.Validate(plainData(t, data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemaRefuses: what it is there to find, each of which Parse refuses, too.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for _, wrong := range []string{
		"[]",
		"allowed_package: {}",
		"version: 1.10",
		"name: \"\"",
		"isolation: Strong",
		"allowed_packages: { pyhton: [] }",
		"allowed_packages: { python: [ numpy ] }",
		"allowed_packages: { python: [ { max_version: \"2.x\" } ] }",
		"allowed_packages: { python: [ { name: numpy, max_version: 2 } ] }",
		"packages: { default: maybe }",
		"packages: { min_release_age: 7 }",
		"packages: { min_release_age: 7x }",
		"packages: { on_hold: wait 20 }",
		"packages: { require_hashes: strong }",
		"packages: { lockfile: { files: [] } }",
		"packages: { lockfile: { files: [poetry.lock] } }",
		"defaults: { max_cpu: 0 }",
		"defaults: { max_pids: 1.5 }",
		"defaults: { timeout_seconds: \"90\" }",
		"resources: { memory_limit: 4GB }",
		"published_ports: [0]",
		"published_ports: [\"80\"]",
		"network_allowlist: [ \"https://a.example\" ]",
		"network_allowlist: [ \"*\" ]",
		"network_allowlist: [ { port: 22 } ]",
		"network_proxy: 3128",
		"network_allowlist: [ { host: \"a.example:22\" } ]",
		"network_allowlist: [ { host: a.example, port: 65536 } ]",
		"filesystem: { workspace: tmp }",
		"rules: [ { name: a } ]",
		"scope: \"**\"",
		"metadata: a text",
		"disclaimer: [ a list ]",
		"environment: {}",
	} {
		if _, err := policy.Parse("p", []byte(wrong)); err == nil {
			t.Errorf("Parse reads %s", wrong)
		}
		if err := schema.Validate(plainData(t, []byte(wrong))); err == nil {
			t.Errorf("the schema takes %s", wrong)
		}
	}
}

// TestSchemaSaysWhatParseSays: at each place of a document both know the same keys and the
// same words.
func TestSchemaSaysWhatParseSays(t *testing.T) {
	t.Parallel()
	text, err := policy.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	w := schemaWalk{t: t}
	w.node(root, func(inner any) any { return inner })
	if w.objects < 20 || w.words < 15 {
		t.Errorf("only %d objects and %d lists of words were seen", w.objects, w.words)
	}
}

// schemaWalk asks Parse about each object and each list of words of the schema.
type schemaWalk struct {
	t              *testing.T
	objects, words int
}

// node looks at one place; around makes the document that has a value there.
func (w *schemaWalk) node(n map[string]any, around func(any) any) {
	if forms, ok := n["anyOf"].([]any); ok {
		for _, form := range forms {
			w.node(form.(map[string]any), around)
		}
	}
	if items, ok := n["items"].(map[string]any); ok {
		w.node(items, func(inner any) any { return around([]any{inner}) })
	}
	if enum, ok := n["enum"].([]any); ok {
		w.enum(enum, around("no-such-word"))
	}
	properties, ok := n["properties"].(map[string]any)
	if !ok {
		return
	}
	known := "known here: " + strings.Join(slices.Sorted(maps.Keys(properties)), ", ")
	if got := w.parse(around(map[string]any{"no_such_key_at_all": 1})); !slices.Contains(got, known) {
		w.t.Errorf("the schema has %s; Parse says %q", known, got)
	}
	w.objects++
	for key, value := range properties {
		w.node(value.(map[string]any), func(inner any) any {
			object := map[string]any{}
			needed, _ := n["required"].([]any)
			for _, other := range needed {
				object[other.(string)] = someValue(other.(string))
			}
			object[key] = inner
			return around(object)
		})
	}
}

func (w *schemaWalk) enum(enum []any, document any) {
	w.words++
	var words []string
	for _, word := range enum {
		words = append(words, word.(string))
	}
	list := words[len(words)-1]
	if len(words) > 1 {
		list = strings.Join(words[:len(words)-1], ", ") + " or " + list
	}
	got := w.parse(document)
	if !slices.ContainsFunc(got, func(line string) bool {
		return strings.Contains(line, " must be "+list+", and is \"no-such-word\"") || strings.HasSuffix(line, "; write "+list)
	}) {
		w.t.Errorf("the schema has %s; Parse says %q", list, got)
	}
}

// parse gives what is wrong with a document, with the keys that it knows in order.
func (w *schemaWalk) parse(document any) []string {
	data, err := json.Marshal(document)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = policy.Parse("p", data)
	if err == nil {
		w.t.Fatalf("Parse reads %s", data)
	}
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if _, keys, ok := strings.Cut(line, "; known here: "); ok {
			line = "known here: " + strings.Join(slices.Sorted(slices.Values(strings.Split(keys, ", "))), ", ")
		}
		lines = append(lines, line)
	}
	return lines
}

// someValue is one that is in order at a key that an object must have.
func someValue(key string) any {
	return map[string]any{
		"name": "a", "action": "allow", "field": "command", "operator": "eq", "value": "x", "ecosystem": "node", "pattern": "a",
		"upstream": "https://a.example/", "host": "a.example", "header": "X", "secret": "s", "source": "/a", "destination": "/b", "mode": "ephemeral",
		"condition": map[string]any{"field": "command", "operator": "eq", "value": "x"},
	}[key]
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := policy.Schema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// plainData is a YAML document as an editor's validator has it.
func plainData(t *testing.T, document []byte) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(document, &value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return value
}
