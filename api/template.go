package api

// TemplateLedger is GET /v1/templates/{name}: a template and what was installed
// in it before any sandbox ran. The host template has no ledger.
type TemplateLedger struct {
	Template

	System []TemplatePackage `json:"system"` // of the distribution
	Python []TemplatePackage `json:"python"` // what Python finds
	Tools  []TemplateTool    `json:"tools"`  // from registries, through the gateway
}

// TemplatePackage is a package of the distribution, or one that Python finds.
type TemplatePackage struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture,omitempty"`
	Folder       string `json:"folder,omitempty"`
	SHA256       string `json:"sha256,omitempty"` // of the file that it came in, where that is known
}

// TemplateTool is a program that came from a registry, and the record of that.
type TemplateTool struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Ecosystem string `json:"ecosystem"`
	Package   string `json:"package"`
	File      string `json:"file"`
	SHA256    string `json:"sha256"`     // hex, of the file
	SourceURL string `json:"source_url"` // without credentials
	Run       string `json:"run"`
	Record    uint64 `json:"record"`
}
