package pypi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

func TestPresent(t *testing.T) {
	metadata := "Metadata-Version: 2.4\nName: rich\nVersion: 1.0\nSummary: Render\tthings\x1b[31m\nAuthor: Will\nAuthor-email: will@x.example\n" +
		"License-Expression: MIT\nProject-URL: Docs, https://docs.example\nProject-URL: Homepage, https://home.example\n" +
		"Requires-Dist: a>=1\nRequires-Dist: b (<2)\n ; extra == 'x'\n\nSummary: of the body\n"
	want := ecosystem.Publication{
		Summary: "Render things\x1b[31m", Maintainer: "Will", Homepage: "https://home.example", License: "MIT", Requires: []string{"a>=1", "b (<2)"},
	}
	if diff := cmp.Diff(want, Protocol{}.Present(ecosystem.File{}, nil, []byte(metadata))); diff != "" {
		t.Error(diff)
	}
	long := Protocol{}.Present(ecosystem.File{}, nil, []byte("Summary: "+strings.Repeat("é", 5000)+"\nLicense: \xff\n"))
	if len(long.Summary) > 310 || !strings.HasSuffix(long.Summary, "é...") || long.License != "\ufffd" {
		t.Errorf("%d bytes, %q", len(long.Summary), long.License)
	}
	if diff := cmp.Diff(ecosystem.Publication{}, Protocol{}.Present(ecosystem.File{}, nil, nil)); diff != "" {
		t.Error(diff)
	}
}
