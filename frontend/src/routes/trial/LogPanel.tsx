import { Title } from "@mantine/core";
import { LogView } from "@/components/LogView";
import { usePaused } from "@/routes/usePaused";
import { wholeLog } from "@/services/log";
import type { Attempt } from "@/services/trials";
import { useLog } from "@/services/useLog";

export function LogPanel({ attempt }: { attempt: Attempt }) {
  const log = useLog(attempt.id, usePaused());

  const download = async () => {
    const url = URL.createObjectURL(new Blob([await wholeLog(attempt.id)], { type: "text/plain" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = `attempt-${attempt.id}.log`;
    link.click();
    URL.revokeObjectURL(url);
  };

  return (
    <section aria-label="Log">
      <Title order={2} mb="xs">
        Log
      </Title>
      <LogView {...log} onDownload={download} />
    </section>
  );
}
