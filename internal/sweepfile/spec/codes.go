package spec

// Codes that another package treats in its own way.
const (
	CodeBodyTooLarge  = "E_BODY_TOO_LARGE" // HTTP 413
	CodeContentType   = "E_CONTENT_TYPE"   // HTTP 415
	CodeUnsatisfiable = "E_UNSATISFIABLE"
	CodeNoSearch      = "W_NO_SEARCH"    // a warning
	CodeMemoryMarks   = "W_MEMORY_MARKS" // a warning
	CodeFieldUnused   = "W_FIELD_UNUSED" // a warning
	CodeStageShares   = "W_STAGE_SHARES" // a warning
)

// The other codes, in the order of docs/errors.md.
const (
	codeBodyEmpty     = "E_BODY_EMPTY"
	codeJSON          = "E_JSON"
	codeYAML          = "E_YAML"
	codeUTF8          = "E_UTF8"
	codeDupKey        = "E_DUP_KEY"
	codeUnknownField  = "E_UNKNOWN_FIELD"
	codeDepth         = "E_DEPTH"
	codeType          = "E_TYPE"
	codeChar          = "E_CHAR"
	codeRange         = "E_RANGE"
	codeFloat         = "E_FLOAT"
	codeUnit          = "E_UNIT"
	codeValue         = "E_VALUE"
	codeFillIn        = "E_FILL_IN"
	codeTooMany       = "E_TOO_MANY"
	codeMore          = "E_MORE"
	codeVersion       = "E_VERSION"
	codeName          = "E_NAME"
	codeLabel         = "E_LABEL"
	codeImage         = "E_IMAGE"
	codeImageDenied   = "E_IMAGE_DENIED"
	codeNetworkDenied = "E_NETWORK_DENIED"
	codeCmd           = "E_CMD"
	codeCmdSize       = "E_CMD_SIZE"
	codeTemplate      = "E_TEMPLATE"
	codeTemplateParam = "E_TEMPLATE_PARAM"
	codeArgDash       = "E_ARG_DASH"
	codeWorkdir       = "E_WORKDIR"
	codeEnvName       = "E_ENV_NAME"
	codeEnvDenied     = "E_ENV_DENIED"
	codeSecret        = "E_SECRET"
	codeDataset       = "E_DATASET"
	codeMountDenied   = "E_MOUNT_DENIED"
	codeMountTarget   = "E_MOUNT_TARGET"
	codeMountDup      = "E_MOUNT_DUP"
	codeSpaceEmpty    = "E_SPACE_EMPTY"
	codeParam         = "E_PARAM"
	codeParamName     = "E_PARAM_NAME"
	codeParamDup      = "E_PARAM_DUP"
	codeParamUnused   = "E_PARAM_UNUSED"
	codeLogRange      = "E_LOG_RANGE"
	codeStep          = "E_STEP"
	codeChoice        = "E_CHOICE"
	codeChoiceDup     = "E_CHOICE_DUP"
	codeProbabilities = "E_PROBABILITIES"
	codeDefault       = "E_DEFAULT"
	codeGrid          = "E_GRID"
	codeCond          = "E_COND"
	codeCondCycle     = "E_COND_CYCLE"
	codeExpr          = "E_EXPR"
	codeEnqueue       = "E_ENQUEUE"
	codeAlgo          = "E_ALGO"
	codeFrom          = "E_FROM"
	codeUnsupported   = "E_UNSUPPORTED"
	codeTrials        = "E_TRIALS"
	codeConcurrency   = "E_CONCURRENCY"
	codeObjective     = "E_OBJECTIVE"
	codeDirection     = "E_DIRECTION"
	codeConstraint    = "E_CONSTRAINT"
	codeEarlyStop     = "E_EARLY_STOP"
	codeStage         = "E_STAGE"
	codeMetrics       = "E_METRICS"
	codeMem           = "E_MEM"
	codeTimeout       = "E_TIMEOUT"
	codeRetries       = "E_RETRIES"
)

// wireCodes say that the document does not have the form of a sweep file.
var wireCodes = map[string]bool{
	CodeBodyTooLarge: true, CodeContentType: true, codeBodyEmpty: true, codeJSON: true, codeYAML: true,
	codeUTF8: true, codeDupKey: true, codeUnknownField: true, codeDepth: true, codeType: true,
}
