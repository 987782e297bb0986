package gvisor_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/engine/enginetest"
)

// siteVariable names a site that a parent test has laid out for this process.
const siteVariable = "ENGINETEST_SITE"

func TestSuite(t *testing.T) {
	s := newSite(t)
	for _, kind := range []engine.RootKind{engine.RootImage, engine.RootDir} {
		t.Run(string(kind), func(t *testing.T) {
			enginetest.Suite(t, func(t *testing.T) *enginetest.Subject {
				t.Helper()
				return s.subject(t, kind)
			})
		})
	}
}
