package environ_test

import (
	"os"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/environ"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sourcetest"
)

func TestConforms(t *testing.T) {
	const name = "COFFERDAM_TEST_SECRET"
	sourcetest.Conforms(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		t.Setenv(name, "")
		return sourcetest.Harness{
			Source: environ.Variable(name),
			Put:    func(t *testing.T, text string) { t.Helper(); t.Setenv(name, text) },
			Remove: func(t *testing.T) {
				t.Helper()
				if err := os.Unsetenv(name); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
