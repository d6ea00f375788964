import { Button, Menu } from "@mantine/core";
import { exportAddress, type ExportFormat, type TrialFilter } from "@/services/trials";

const formats: Record<ExportFormat, string> = { csv: "CSV", jsonl: "JSON lines", parquet: "Parquet" };

/** The trials that the list shows as a file, by number. The server sends it while it reads. */
export function ExportTrials({ sweepId, filter }: { sweepId: string; filter: TrialFilter }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button size="xs" variant="default">
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {(Object.keys(formats) as ExportFormat[]).map((format) => (
          <Menu.Item key={format} component="a" href={exportAddress(sweepId, filter, format)} download>
            {formats[format]}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
