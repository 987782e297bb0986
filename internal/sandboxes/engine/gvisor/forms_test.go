//go:build !long

package gvisor_test

import (
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
)

// forms: templates are images, so these are tested in full. The other form is, too,
// with the tag long.
func forms() []form {
	return []form{{engine.RootImage, enginetest.Suite}, {engine.RootDir, enginetest.SuiteOfRoots}}
}

// asNobody tells that the suite is also run by a user without rights.
const asNobody = false
