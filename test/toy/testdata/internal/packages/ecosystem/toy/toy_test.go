package toy

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/ecosystemtest"
)

func TestConformance(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	ecosystemtest.Run(t, ecosystemtest.Sample{
		Protocol: New(), Project: "good", URL: "https://index.example/toys/good", ContentType: mediaType,
		Body:  []byte("toy good\n1.0.0 " + digest + "\n2.0.0 " + digest + "\nend\n"),
		Files: 2, Place: ecosystem.Place{Base: "/toys/", Files: true}, IndexPath: "/toys/good",
		Hostile: []string{"/toys/Good", "/toys/good/latest.toy", "/toys/good/.toy", "/good", "/toys/good.toy"},
		Accept:  []string{"", "*/*"},
		Shown:   func(f ecosystem.File) string { return f.Version + " " },
	})
}
