//go:build long

package gvisor_test

import (
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
)

func forms() []form {
	return []form{{engine.RootImage, enginetest.Suite}, {engine.RootDir, enginetest.Suite}}
}

const asNobody = true
