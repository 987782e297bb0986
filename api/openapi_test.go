package api_test

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
)

// types are all that cross the wire.
func types() []any {
	return []any{
		api.Advisories{},
		api.AdvisoryAlarm{},
		api.AdvisoryEvent{},
		api.AdvisoryImport{},
		api.AdvisorySource{},
		api.Alarm{},
		api.Alarms{},
		api.AnswerApprovals{},
		api.ApprovalDiff{},
		api.ApprovalEvent{},
		api.ApprovalPage{},
		api.AuditQuery{},
		api.AuditQuestion{},
		api.AuditReport{},
		api.AuditTable{},
		api.Call{},
		api.CallFailure{},
		api.CallResult{},
		api.Clock{},
		api.ConfigReload{},
		api.Command{},
		api.Control{},
		api.Controls{},
		api.CreateSandbox{},
		api.DecidingFile{},
		api.EraseAudit{},
		api.ErasedAudit{},
		api.Event{},
		api.Exit{},
		api.FileChange{},
		api.FileInfo{},
		api.FileText{},
		api.Finding{},
		api.Fork{},
		api.ForkSandbox{},
		api.Forks{},
		api.Hold{},
		api.Home{},
		api.Host{},
		api.ImportAdvisories{},
		api.ImportProblem{},
		api.InstallPage{},
		api.KeptHome{},
		api.KnownMalware{},
		api.Lifetime{},
		api.Lockfile{},
		api.Lookalike{},
		api.Vulnerabilities{},
		api.Vulnerability{},
		api.MakeDirectory{},
		api.Limits{},
		api.MakeSnapshot{},
		api.MakeToken{},
		api.Mount{},
		api.MoveFile{},
		api.Name{},
		api.NamedPolicy{},
		api.NewToken{},
		api.Package{},
		api.PackageFacts{},
		api.Plan{},
		api.PlanChoice{},
		api.PlanRelease{},
		api.Policy{},
		api.Problem{},
		api.PutPolicy{},
		api.Quota{},
		api.Refusal{},
		api.Refusals{},
		api.Ref{},
		api.ResolvedPlan{},
		api.RevokeApproval{},
		api.RotateAuditKey{},
		api.RotatedAuditKey{},
		api.RunSummary{},
		api.RefusedByCaller{},
		api.Sandbox{},
		api.SandboxTool{},
		api.SandboxPage{},
		api.SealAudit{},
		api.SealedAudit{},
		api.SealedSegment{},
		api.Secret{},
		api.Snapshot{},
		api.SignalCommand{},
		api.StartCommand{},
		api.Stuck{},
		api.SuggestedRoot{},
		api.Suggestion{},
		api.Template{},
		api.TemplateEvent{},
		api.TemplateLedger{},
		api.TemplatePackage{},
		api.TemplateTool{},
		api.Token{},
		api.ToolUse{},
		api.Usage{},
		api.Version{},
	}
}

// others are types of other packages that cross the wire as they are, by their names there.
func others() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[approval.Request]():         "Approval",
		reflect.TypeFor[approval.Answer]():          "ApprovalAnswer",
		reflect.TypeFor[approval.Asker]():           "ApprovalAsker",
		reflect.TypeFor[approval.Call]():            "ApprovalCall",
		reflect.TypeFor[approval.File]():            "ApprovalFile",
		reflect.TypeFor[approval.Host]():            "ApprovalHost",
		reflect.TypeFor[approval.Member]():          "ApprovalMember",
		reflect.TypeFor[approval.Seen]():            "ApprovalSeen",
		reflect.TypeFor[approval.Revised]():         "ApprovalRevised",
		reflect.TypeFor[evidence.Evidence]():        "Evidence",
		reflect.TypeFor[evidence.Inside]():          "EvidenceOfFile",
		reflect.TypeFor[evidence.Host]():            "EvidenceOfHost",
		reflect.TypeFor[evidence.Call]():            "EvidenceOfCall",
		reflect.TypeFor[evidence.Cut]():             "EvidenceCut",
		reflect.TypeFor[evidence.Vulnerabilities](): "EvidenceOfVulnerabilities",
		reflect.TypeFor[audit.Record]():             "Record",
		reflect.TypeFor[audit.WithheldRange]():      "WithheldRange",
	}
}

// nameOf is a type's in the description.
func nameOf(t reflect.Type) string { return cmp.Or(others()[t], t.Name()) }

// property is what the description and a Go field have to agree on.
type property struct {
	Type  string
	Ref   string
	Items string
}

type schema struct {
	Ref        string            `yaml:"$ref"`
	Type       string            `yaml:"type"`
	Properties map[string]schema `yaml:"properties"`
	Required   []string          `yaml:"required"`
	AllOf      []schema          `yaml:"allOf"`
	Items      *schema           `yaml:"items"`
}

// TestTheDescriptionIsOfTheTypes: every field of a wire type is described, with its
// type, and nothing else is.
func TestTheDescriptionIsOfTheTypes(t *testing.T) {
	t.Parallel()
	var doc struct {
		Components struct {
			Schemas map[string]schema `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(api.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(doc.Components.Schemas)
	all := slices.Collect(maps.Keys(others()))
	for _, v := range types() {
		all = append(all, reflect.TypeOf(v))
	}
	for _, one := range all {
		name := nameOf(one)
		described, ok := left[name]
		delete(left, name)
		if !ok {
			t.Errorf("%s is not described", name)
			continue
		}
		if diff := gocmp.Diff(fieldsOf(one, described.AllOf), propertiesOf(described)); diff != "" {
			t.Errorf("%s: the type (-) and its description (+) differ:\n%s", name, diff)
		}
	}
	if len(left) > 0 {
		t.Errorf("described, and no wire types (add them to types()): %v", slices.Sorted(maps.Keys(left)))
	}
}

// TestEveryTypeIsDescribed: no struct of this package was forgotten in types.
func TestEveryTypeIsDescribed(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, v := range types() {
		listed[reflect.TypeOf(v).Name()] = true
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is || !spec.Name.IsExported() {
				return true
			}
			if _, is := spec.Type.(*ast.StructType); !is {
				return true
			}
			if found++; !listed[spec.Name.Name] {
				t.Errorf("%s has the type %s, which types() does not list", file.Name(), spec.Name.Name)
			}
			return true
		})
	}
	if found == 0 {
		t.Error("there are no types")
	}
}

// TestWhatIsReferredToIsThere: a reference that leads nowhere makes the whole description
// useless to generators of clients.
func TestWhatIsReferredToIsThere(t *testing.T) {
	t.Parallel()
	var doc yaml.Node
	if err := yaml.Unmarshal(api.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	refs := references(&doc)
	if len(refs) == 0 {
		t.Error("nothing is referred to")
	}
	for ref := range refs {
		at := doc.Content[0]
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			if at = under(at, part); at == nil {
				t.Errorf("%s is referred to, and is not there", ref)
				break
			}
		}
	}
}

// references are the values of all $ref below a node.
func references(n *yaml.Node) map[string]bool {
	all := map[string]bool{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "$ref" {
			all[child.Value] = true
		}
		maps.Copy(all, references(child))
	}
	return all
}

// under is a key's value; nil: it is not there.
func under(n *yaml.Node, key string) *yaml.Node {
	for i := 1; i < len(n.Content); i += 2 {
		if n.Kind == yaml.MappingNode && n.Content[i-1].Value == key {
			return n.Content[i]
		}
	}
	return nil
}

// TestTheWordsOfRecords: the description has the outcomes and kinds that the log has.
func TestTheWordsOfRecords(t *testing.T) {
	t.Parallel()
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Enum []string `yaml:"enum"`
				} `yaml:"properties"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(api.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	record := doc.Components.Schemas["Record"].Properties
	if diff := gocmp.Diff(texts(audit.Outcomes()), record["outcome"].Enum); diff != "" {
		t.Error(diff)
	}
	if diff := gocmp.Diff(texts(audit.Kinds()), record["kind"].Enum); diff != "" {
		t.Error(diff)
	}
}

func texts[T ~string](values []T) []string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

func propertiesOf(s schema) map[string]property {
	all := map[string]property{}
	for name, p := range s.Properties {
		one := property{Type: p.Type, Ref: refName(p.Ref)}
		if p.Type == "" && p.Ref == "" { // any JSON
			one.Ref = "raw"
		}
		if p.Items != nil {
			one.Items = p.Items.Type + refName(p.Items.Ref)
		}
		all[name] = one
	}
	return all
}

func refName(ref string) string {
	name := strings.TrimPrefix(ref, "#/components/schemas/")
	if name == "Approval" || name == "Record" { // raw JSON, one as the other
		return "raw"
	}
	return name
}

// fieldsOf are a struct's fields; those of an embedded one are the description's
// allOf.
func fieldsOf(t reflect.Type, embedded []schema) map[string]property {
	all := map[string]property{}
	for f := range t.Fields() {
		if f.Anonymous {
			if !slices.ContainsFunc(embedded, func(s schema) bool { return refName(s.Ref) == f.Type.Name() }) {
				all["(embedded) "+f.Type.Name()] = property{}
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "-" {
			all[name] = propertyOf(f.Type)
		}
	}
	return all
}

func propertyOf(t reflect.Type) property {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return property{Ref: "raw"}
	case t == reflect.TypeFor[[]byte]():
		return property{Type: "string"}
	case t.PkgPath() == "time":
		return property{Type: "string"}
	}
	switch t.Kind() { //nolint:exhaustive // the wire has no others
	case reflect.String:
		return property{Type: "string"}
	case reflect.Bool:
		return property{Type: "boolean"}
	case reflect.Float64:
		return property{Type: "number"}
	case reflect.Map:
		return property{Type: "object"}
	case reflect.Slice:
		items := propertyOf(t.Elem())
		return property{Type: "array", Items: items.Type + items.Ref}
	case reflect.Struct:
		return property{Ref: refName(nameOf(t))}
	}
	return property{Type: "integer"}
}
