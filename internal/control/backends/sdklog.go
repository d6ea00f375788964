package backends

import (
	"log/slog"

	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
)

// sdkLog is the log of Temporal's SDK. The SDK logs a canceled attempt as an
// error; sdkLog logs it at debug level.
type sdkLog struct{ temporallog.Logger }

func newSDKLog(log *slog.Logger) temporallog.Logger {
	return sdkLog{temporallog.NewStructuredLogger(log)}
}

// Error logs an error, unless it is a cancellation that was carried out.
func (l sdkLog) Error(message string, keysAndValues ...any) {
	for _, value := range keysAndValues {
		if err, ok := value.(error); ok && temporal.IsCanceledError(err) {
			l.Debug(message, keysAndValues...)

			return
		}
	}

	l.Logger.Error(message, keysAndValues...)
}
