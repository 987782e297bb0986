package api_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// types are all that cross the wire.
func types() []any {
	return []any{
		api.Advisories{},
		api.AdvisoryAlarm{},
		api.AdvisoryEvent{},
		api.AdvisoryImport{},
		api.AdvisorySource{},
		api.AnswerApprovals{},
		api.ApprovalEvent{},
		api.ApprovalPage{},
		api.AuditQuery{},
		api.AuditQuestion{},
		api.AuditReport{},
		api.AuditTable{},
		api.Clock{},
		api.Command{},
		api.Control{},
		api.Controls{},
		api.CreateSandbox{},
		api.EraseAudit{},
		api.ErasedAudit{},
		api.Event{},
		api.Exit{},
		api.FileInfo{},
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
		pkgref.Ref{},
		api.ResolvedPlan{},
		api.RevokeApproval{},
		api.RotateAuditKey{},
		api.RotatedAuditKey{},
		api.RunSummary{},
		api.Sandbox{},
		api.SandboxPage{},
		api.SealAudit{},
		api.SealedAudit{},
		api.SealedSegment{},
		api.Secret{},
		api.Snapshot{},
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
	for _, v := range types() {
		name := reflect.TypeOf(v).Name()
		described, ok := left[name]
		delete(left, name)
		if !ok {
			t.Errorf("%s is not described", name)
			continue
		}
		if diff := cmp.Diff(fieldsOf(reflect.TypeOf(v), described.AllOf), propertiesOf(described)); diff != "" {
			t.Errorf("%s: the type (-) and its description (+) differ:\n%s", name, diff)
		}
	}
	delete(left, "Approval") // raw JSON of another package
	delete(left, "Record")
	if len(left) > 0 {
		t.Errorf("described, and no wire types (add them to types()): %v", slices.Sorted(maps.Keys(left)))
	}
}

func propertiesOf(s schema) map[string]property {
	all := map[string]property{}
	for name, p := range s.Properties {
		one := property{Type: p.Type, Ref: refName(p.Ref)}
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
		return property{Ref: t.Name()}
	}
	return property{Type: "integer"}
}
