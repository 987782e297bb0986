package guest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

func TestParseRequest(t *testing.T) {
	many := slices.Repeat([]string{"x"}, channel.MaxRequestItems+1)
	for name, tt := range map[string]struct {
		args []string
		want []channel.RequestItem
		err  string
	}{
		"python":       {[]string{"python", "rich", "attrs==23.2.0", "--because", "tables"}, []channel.RequestItem{{Ecosystem: "python", Name: "rich"}, {Ecosystem: "python", Name: "attrs", Version: "23.2.0"}}, ""},
		"scoped":       {[]string{"--because=tables", "node", "@a/b", "@a/c@1.2.3"}, []channel.RequestItem{{Ecosystem: "node", Name: "@a/b"}, {Ecosystem: "node", Name: "@a/c", Version: "1.2.3"}}, ""},
		"go":           {[]string{"go", "x.example/m@v1.0.0", "--because", "tables"}, []channel.RequestItem{{Ecosystem: "go", Name: "x.example/m", Version: "v1.0.0"}}, ""},
		"by a client":  {[]string{"npm", "rich@1.0.0", "--because", "tables"}, []channel.RequestItem{{Ecosystem: "node", Name: "rich", Version: "1.0.0"}}, ""},
		"nothing":      {nil, nil, "at least one package"},
		"no package":   {[]string{"python"}, nil, "at least one package"},
		"no ecosystem": {[]string{"rich", "x"}, nil, "is no ecosystem"},
		"flag":         {[]string{"python", "rich", "--approve"}, nil, "no flag"},
		"no reason":    {[]string{"python", "rich", "--because"}, nil, "the reason after it"},
		"long reason":  {[]string{"python", "rich", "--because", strings.Repeat("x", 3000)}, nil, "at most 2000"},
		"too many":     {append([]string{"python"}, many...), nil, "at most 50"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseRequest(tt.args)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v", err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got.Request.Items); diff != "" || err != nil || got.Request.Because != "tables" {
				t.Errorf("%v %q\n%s", err, got.Request.Because, diff)
			}
		})
	}
}
