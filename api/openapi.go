package api

import _ "embed"

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI is the description of /v1 as OpenAPI 3.1, in YAML: GET
// /v1/openapi.yaml. The caller must not change it.
func OpenAPI() []byte { return openAPI }
