package advisory

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestLookalikes: names that were made to be mistaken, and names that only
// happen to be short or of the same family.
func TestLookalikes(t *testing.T) {
	for _, tt := range []struct {
		ecosystem pkgref.Ecosystem
		name      string
		want      string // "popular: how", or "" for nothing
	}{
		{pkgref.Python, "reqeusts", "requests: " + howSwapped},
		{pkgref.Python, "request", "requests: " + howMissing},
		{pkgref.Python, "requestss", "requests: " + howAdded},
		{pkgref.Python, "rwquests", "requests: " + howDiffers},
		{pkgref.Python, "rwquezts", "requests: " + howTwo},
		{pkgref.Python, "python-requests", "requests: " + howAffix},
		{pkgref.Python, "requests-py", "requests: " + howAffix},
		{pkgref.Python, "requests3", "requests: " + howAdded},
		{pkgref.Python, "pythondateutil", "python-dateutil: " + howSeparators},
		{pkgref.Python, "python-dateutils", "python-dateutil: " + howAdded},
		{pkgref.Python, "dateutil", "python-dateutil: " + howAffix},
		{pkgref.Python, "dateutil-python", "python-dateutil: " + howWords},
		{pkgref.Python, "scikit-1earn", "scikit-learn: " + howConfusable},
		{pkgref.Python, "nurnpy", "numpy: " + howConfusable},
		{pkgref.Python, "b0t0core", "botocore: " + howConfusable},
		{pkgref.Python, "djang0", "django: " + howConfusable},
		{pkgref.Python, "djnago", "django: " + howSwapped},
		{pkgref.Python, "equests", "requests: " + howMissing},
		{pkgref.Python, "beautifulsoup", "beautifulsoup4: " + howMissing},
		{pkgref.Python, "requests", ""},      // popular itself
		{pkgref.Python, "pytest-env", ""},    // of a family, not a misspelt pytest-cov
		{pkgref.Python, "nix", ""},           // too short to be a misspelt six
		{pkgref.Python, "quite-another", ""}, //
		{pkgref.Python, "fastapi-users", ""}, // an extension
		{pkgref.Node, "loadsh", "lodash: " + howSwapped},
		{pkgref.Node, "Lodash", "lodash: " + howCase},
		{pkgref.Node, "lo-dash", "lodash: " + howSeparators},
		{pkgref.Node, "crossenv", "cross-env: " + howSeparators},
		{pkgref.Node, "cross.env", "cross-env: " + howSeparators},
		{pkgref.Node, "express-js", "express: " + howAffix},
		{pkgref.Node, "expressjs", "express: " + howAffix},
		{pkgref.Node, "node-express", "express: " + howAffix},
		{pkgref.Node, "request-js", "request: " + howAffix},
		{pkgref.Node, "types-node", "@types/node: " + howScope},
		{pkgref.Node, "babel-preset-env", "@babel/preset-env: " + howScope},
		{pkgref.Node, "@angu1ar/core", "@angular/core: " + howConfusable},
		{pkgref.Node, "@types-js/node", "@types/node: " + howScopeNear},
		{pkgref.Node, "@type/node", "@types/node: " + howMissing},
		{pkgref.Node, "@lod/ash", "lodash: " + howScope},
		{pkgref.Node, "@angular/never-heard-of-it", ""}, // its owner publishes it
		{pkgref.Node, "@mycompany/core", ""},
		{pkgref.Rust, "serde-jsn", "serde-json: " + howMissing},
		{pkgref.Rust, "serdejson", "serde-json: " + howSeparators},
		{pkgref.Rust, "tokio-rs", "tokio: " + howAffix},
		{pkgref.Rust, "rustdecimal", "rust-decimal: " + howSeparators},
		{pkgref.Go, "github.com/strechr/testify", "github.com/stretchr/testify: " + howOwnerNear},
		{pkgref.Go, "github.com/Stretchr/testify", "github.com/stretchr/testify: " + howCase},
		{pkgref.Go, "github.com/stretchr-go/testify", "github.com/stretchr/testify: " + howOwnerNear},
		{pkgref.Go, "github.com/boltdb-go/bolt", "github.com/boltdb/bolt: " + howOwnerNear},
		{pkgref.Go, "gitlab.com/stretchr/testify", "github.com/stretchr/testify: " + howHost},
		{pkgref.Go, "go1ang.org/x/net", "golang.org/x/net: " + howHost},
		{pkgref.Go, "github.com/somebody/testify", "github.com/stretchr/testify: " + howOwner},
		{pkgref.Go, "github.com/somebody/testify/v2", "github.com/stretchr/testify: " + howOwner},
		{pkgref.Go, "gopkg.in/yamll.v3", "gopkg.in/yaml.v3: " + howAdded},
		{pkgref.Go, "github.com/stretchr/testifyy", ""}, // its owner publishes it
		{pkgref.Go, "gopkg.in/yaml.v1", ""},
		{pkgref.Go, "github.com/somebody/errors", ""}, // everybody has one
		{pkgref.Go, "host.example/a/b", ""},
	} {
		p := newPopularity(tt.ecosystem, shippedNames(tt.ecosystem))
		got := ""
		if l := p.nearest(tt.name); l != nil {
			got = l.Name + ": " + l.How
		}
		if got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.ecosystem, tt.name, got, tt.want)
		}
	}
}

// TestLookalikesAreDeterministic: the most popular of equally near names, and
// the nearest class before all.
func TestLookalikesAreDeterministic(t *testing.T) {
	p := newPopularity(pkgref.Node, []string{"carts", "darts", "bart-s", "quickest"})
	for name, want := range map[string]string{"darrts": "darts", "carrts": "carts", "barts": "bart-s", "carts": ""} {
		got := ""
		if l := p.nearest(name); l != nil {
			got = l.Name
		}
		if got != want {
			t.Errorf("%s is near to %q, not %q", name, got, want)
		}
	}
}

// plainEdits is the textbook's table.
func plainEdits(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+boolInt(a[i-1] != b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return min(d[len(a)][len(b)], maxNear+1)
}

func TestEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.StringMatching(`[ab1-]{0,9}`).Draw(t, "a")
		b := rapid.StringMatching(`[ab1-]{0,9}`).Draw(t, "b")
		if rapid.Bool().Draw(t, "near") {
			b = a
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				i := rapid.IntRange(0, len(b)).Draw(t, "at")
				b = b[:i] + rapid.SampledFrom([]string{"", "a", "x"}).Draw(t, "with") + b[min(i+1, len(b)):]
			}
		}
		got, want := countEdits(a, b), plainEdits(a, b)
		if got != want || countEdits(b, a) != want {
			t.Fatalf("%q and %q are %d apart, not %d (%d the other way)", a, b, want, got, countEdits(b, a))
		}
		if want <= maxNear && want > 0 && strings.ToLower(a) == a {
			if x := letters(a) ^ letters(b); len(strings.ReplaceAll(bin(x), "0", "")) > 2*want {
				t.Fatalf("%q and %q differ in too many letters to be found", a, b)
			}
		}
	})
}

func bin(x uint64) string {
	var b strings.Builder
	for ; x > 0; x >>= 1 {
		b.WriteByte('0' + byte(x&1))
	}
	return b.String()
}

// FuzzNearest: whatever the name, there is an answer, and never the name itself.
func FuzzNearest(f *testing.F) {
	lists := map[pkgref.Ecosystem]*popularity{}
	for _, e := range pkgref.Ecosystems() {
		lists[e] = newPopularity(e, shippedNames(e))
	}
	for _, s := range []string{"reqeusts", "@angu1ar/core", "github.com/x/testify", "gopkg.in/yamll.v3", "a", "-", "@/x", "v2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for e, p := range lists {
			if l := p.nearest(name); l != nil && (l.Name == name || l.How == "") {
				t.Fatalf("%s %q is near to %+v", e, name, l)
			}
		}
	})
}
