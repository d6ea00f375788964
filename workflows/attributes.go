package workflows

import (
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
)

// The search attributes by which a person finds workflows in Temporal's UI.
var (
	attrSweepID     = temporal.NewSearchAttributeKeyKeyword("SweepId")
	attrTrialStatus = temporal.NewSearchAttributeKeyKeyword("TrialStatus")
	attrHostID      = temporal.NewSearchAttributeKeyKeyword("HostId")
	attrDeviceID    = temporal.NewSearchAttributeKeyKeyword("DeviceId")
	attrShapeKey    = temporal.NewSearchAttributeKeyKeyword("ShapeKey")
	attrPeakMiB     = temporal.NewSearchAttributeKeyInt64("PeakMiB")
	attrOOMRetries  = temporal.NewSearchAttributeKeyInt64("OomRetries")
	attrObjective   = temporal.NewSearchAttributeKeyFloat64("Objective")
)

// SearchAttributes are all attributes with their types, as Temporal wants them
// registered before the first workflow starts.
func SearchAttributes() map[string]enums.IndexedValueType {
	return map[string]enums.IndexedValueType{
		attrSweepID.GetName():     enums.INDEXED_VALUE_TYPE_KEYWORD,
		attrTrialStatus.GetName(): enums.INDEXED_VALUE_TYPE_KEYWORD,
		attrHostID.GetName():      enums.INDEXED_VALUE_TYPE_KEYWORD,
		attrDeviceID.GetName():    enums.INDEXED_VALUE_TYPE_KEYWORD,
		attrShapeKey.GetName():    enums.INDEXED_VALUE_TYPE_KEYWORD,
		attrPeakMiB.GetName():     enums.INDEXED_VALUE_TYPE_INT,
		attrOOMRetries.GetName():  enums.INDEXED_VALUE_TYPE_INT,
		attrObjective.GetName():   enums.INDEXED_VALUE_TYPE_DOUBLE,
	}
}

// SweepAttributes are the search attributes of a SweepWorkflow.
func SweepAttributes(sweepID string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(attrSweepID.ValueSet(sweepID))
}

// TrialAttributes are the search attributes of a TrialWorkflow.
func TrialAttributes(sweepID string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(attrSweepID.ValueSet(sweepID), attrTrialStatus.ValueSet(string(berth.TrialWaiting)))
}

// ProbeAttributes are the search attributes of a ProbeWorkflow.
func ProbeAttributes(shapeKey string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(attrShapeKey.ValueSet(berth.ShortKey(shapeKey)))
}

// tag sets search attributes. A server that does not know them must not stop a
// trial, so a refusal is only logged.
func tag(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Warn("setting search attributes", "error", err)
	}
}
