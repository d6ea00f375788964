import { When } from "@/components/When";
import { gpuName } from "@/lib/format";
import type { KeptHost } from "@/services/hosts";

/** The host or GPU that takes no younger attempt until this one fits there or its turn is over, as it has waited for too long. */
export function Kept({ host }: { host: KeptHost }) {
  return (
    <>
      {host.device_id === undefined ? "Host" : `GPU ${gpuName(host.device_id)} of host`} {host.name} is kept free for it
      since <When at={host.since} />: nothing younger starts there until it fits, or its turn is over.
    </>
  );
}
