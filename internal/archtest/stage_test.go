package archtest_test

import (
	"strings"
	"testing"
)

// heavy is what takes long to begin with, and the stage, which starts with each sandbox,
// can do without.
var heavy = []string{
	"internal/decide/policy", "internal/packages/gateway", "internal/decide/dlp", "internal/packages/ecosystem", "internal/serve/httpapi", "internal/sandboxes/engine/wasm",
	"github.com/santhosh-tekuri", "github.com/google/osv-scalibr", "github.com/prometheus", "github.com/spf13",
	"github.com/modelcontextprotocol", "go.opentelemetry.io", "modernc.org",
}

// TestTheStageCarriesLittle follows the imports of the program that lays out sandboxes.
func TestTheStageCarriesLittle(t *testing.T) {
	imports := map[string][]string{}
	for _, f := range tree(t) {
		if !f.test {
			imports[f.pkg] = append(imports[f.pkg], f.imports...)
		}
	}
	seen := map[string]bool{}
	var follow func(pkg string)
	follow = func(pkg string) {
		for _, imp := range imports[pkg] {
			rel := strings.TrimPrefix(imp, module+"/")
			if seen[rel] {
				continue
			}
			seen[rel] = true
			for _, h := range heavy {
				if below(rel, h) {
					t.Errorf("cofferdam-stage carries %s, by %s", rel, pkg)
				}
			}
			follow(rel)
		}
	}
	follow("cmd/cofferdam-stage")
	if !seen["internal/sandboxes/engine/runc"] {
		t.Error("the imports were not followed")
	}
}
