package httpapi

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestEveryRouteIsDescribed, and nothing else is.
func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]yaml.Node `yaml:"paths"`
	}
	if err := yaml.Unmarshal(api.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for path, operations := range doc.Paths {
		for method := range operations {
			if method != "parameters" {
				described[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	for _, r := range New(Config{}).routes() {
		if !described[r.pattern] {
			t.Errorf("api/openapi.yaml does not describe %s", r.pattern)
		}
		delete(described, r.pattern)
	}
	for pattern := range described {
		t.Errorf("api/openapi.yaml describes %s, which there is not", pattern)
	}
}
