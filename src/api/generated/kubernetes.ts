// Kubernetes v1.35.4, made by hack/openapi. Do not edit.
import type { ObjectMeta } from "../object.ts";
export interface components {
    schemas: {
        "io.k8s.api.batch.v1.Job": {
            apiVersion?: string;
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
            spec?: components["schemas"]["io.k8s.api.batch.v1.JobSpec"];
            status?: components["schemas"]["io.k8s.api.batch.v1.JobStatus"];
        };
        "io.k8s.api.batch.v1.JobCondition": {
            lastProbeTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            lastTransitionTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            message?: string;
            reason?: string;
            status: string;
            type: string;
        };
        "io.k8s.api.batch.v1.JobSpec": {
            /** Format: int64 */
            activeDeadlineSeconds?: number;
            /** Format: int32 */
            backoffLimit?: number;
            /** Format: int32 */
            backoffLimitPerIndex?: number;
            completionMode?: string;
            /** Format: int32 */
            completions?: number;
            managedBy?: string;
            manualSelector?: boolean;
            /** Format: int32 */
            maxFailedIndexes?: number;
            /** Format: int32 */
            parallelism?: number;
            podFailurePolicy?: components["schemas"]["io.k8s.api.batch.v1.PodFailurePolicy"];
            podReplacementPolicy?: string;
            selector?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
            successPolicy?: components["schemas"]["io.k8s.api.batch.v1.SuccessPolicy"];
            suspend?: boolean;
            template: components["schemas"]["io.k8s.api.core.v1.PodTemplateSpec"];
            /** Format: int32 */
            ttlSecondsAfterFinished?: number;
        };
        "io.k8s.api.batch.v1.JobStatus": {
            /** Format: int32 */
            active?: number;
            completedIndexes?: string;
            completionTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            conditions?: components["schemas"]["io.k8s.api.batch.v1.JobCondition"][];
            /** Format: int32 */
            failed?: number;
            failedIndexes?: string;
            /** Format: int32 */
            ready?: number;
            startTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            /** Format: int32 */
            succeeded?: number;
            /** Format: int32 */
            terminating?: number;
            uncountedTerminatedPods?: components["schemas"]["io.k8s.api.batch.v1.UncountedTerminatedPods"];
        };
        "io.k8s.api.batch.v1.PodFailurePolicy": {
            rules: components["schemas"]["io.k8s.api.batch.v1.PodFailurePolicyRule"][];
        };
        "io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement": {
            containerName?: string;
            operator: string;
            values: number[];
        };
        "io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern": {
            status?: string;
            type: string;
        };
        "io.k8s.api.batch.v1.PodFailurePolicyRule": {
            action: string;
            onExitCodes?: components["schemas"]["io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement"];
            onPodConditions?: components["schemas"]["io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern"][];
        };
        "io.k8s.api.batch.v1.SuccessPolicy": {
            rules: components["schemas"]["io.k8s.api.batch.v1.SuccessPolicyRule"][];
        };
        "io.k8s.api.batch.v1.SuccessPolicyRule": {
            /** Format: int32 */
            succeededCount?: number;
            succeededIndexes?: string;
        };
        "io.k8s.api.batch.v1.UncountedTerminatedPods": {
            failed?: string[];
            succeeded?: string[];
        };
        "io.k8s.api.coordination.v1.Lease": {
            apiVersion?: string;
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
            spec?: components["schemas"]["io.k8s.api.coordination.v1.LeaseSpec"];
        };
        "io.k8s.api.coordination.v1.LeaseSpec": {
            acquireTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"];
            holderIdentity?: string;
            /** Format: int32 */
            leaseDurationSeconds?: number;
            /** Format: int32 */
            leaseTransitions?: number;
            preferredHolder?: string;
            renewTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"];
            strategy?: string;
        };
        "io.k8s.api.core.v1.AWSElasticBlockStoreVolumeSource": {
            fsType?: string;
            /** Format: int32 */
            partition?: number;
            readOnly?: boolean;
            volumeID: string;
        };
        "io.k8s.api.core.v1.Affinity": {
            nodeAffinity?: components["schemas"]["io.k8s.api.core.v1.NodeAffinity"];
            podAffinity?: components["schemas"]["io.k8s.api.core.v1.PodAffinity"];
            podAntiAffinity?: components["schemas"]["io.k8s.api.core.v1.PodAntiAffinity"];
        };
        "io.k8s.api.core.v1.AppArmorProfile": {
            localhostProfile?: string;
            type: string;
        };
        "io.k8s.api.core.v1.AttachedVolume": {
            devicePath: string;
            name: string;
        };
        "io.k8s.api.core.v1.AzureDiskVolumeSource": {
            cachingMode?: string;
            diskName: string;
            diskURI: string;
            fsType?: string;
            kind?: string;
            readOnly?: boolean;
        };
        "io.k8s.api.core.v1.AzureFileVolumeSource": {
            readOnly?: boolean;
            secretName: string;
            shareName: string;
        };
        "io.k8s.api.core.v1.CSIVolumeSource": {
            driver: string;
            fsType?: string;
            nodePublishSecretRef?: components["schemas"]["io.k8s.api.core.v1.LocalObjectReference"];
            readOnly?: boolean;
            volumeAttributes?: {
                [key: string]: string;
            };
        };
        "io.k8s.api.core.v1.Capabilities": {
            add?: string[];
            drop?: string[];
        };
        "io.k8s.api.core.v1.CephFSVolumeSource": {
            monitors: string[];
            path?: string;
            readOnly?: boolean;
            secretFile?: string;
            secretRef?: components["schemas"]["io.k8s.api.core.v1.LocalObjectReference"];
            user?: string;
        };
        "io.k8s.api.core.v1.CinderVolumeSource": {
            fsType?: string;
            readOnly?: boolean;
            secretRef?: components["schemas"]["io.k8s.api.core.v1.LocalObjectReference"];
            volumeID: string;
        };
        "io.k8s.api.core.v1.ClientIPConfig": {
            /** Format: int32 */
            timeoutSeconds?: number;
        };
        "io.k8s.api.core.v1.ClusterTrustBundleProjection": {
            labelSelector?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
            name?: string;
            optional?: boolean;
            path: string;
            signerName?: string;
        };
        "io.k8s.api.core.v1.ConfigMap": {
            apiVersion?: string;
            binaryData?: {
                [key: string]: string;
            };
            data?: {
                [key: string]: string;
            };
            immutable?: boolean;
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
        };
        "io.k8s.api.core.v1.ConfigMapEnvSource": {
            name?: string;
            optional?: boolean;
        };
        "io.k8s.api.core.v1.ConfigMapKeySelector": {
            key: string;
            name?: string;
            optional?: boolean;
        };
        "io.k8s.api.core.v1.ConfigMapNodeConfigSource": {
            kubeletConfigKey: string;
            name: string;
            namespace: string;
            resourceVersion?: string;
            uid?: string;
        };
        "io.k8s.api.core.v1.ConfigMapProjection": {
            items?: components["schemas"]["io.k8s.api.core.v1.KeyToPath"][];
            name?: string;
            optional?: boolean;
        };
        "io.k8s.api.core.v1.ConfigMapVolumeSource": {
            /** Format: int32 */
            defaultMode?: number;
            items?: components["schemas"]["io.k8s.api.core.v1.KeyToPath"][];
            name?: string;
            optional?: boolean;
        };
        "io.k8s.api.core.v1.Container": {
            args?: string[];
            command?: string[];
            env?: components["schemas"]["io.k8s.api.core.v1.EnvVar"][];
            envFrom?: components["schemas"]["io.k8s.api.core.v1.EnvFromSource"][];
            image?: string;
            imagePullPolicy?: string;
            lifecycle?: components["schemas"]["io.k8s.api.core.v1.Lifecycle"];
            livenessProbe?: components["schemas"]["io.k8s.api.core.v1.Probe"];
            name: string;
            ports?: components["schemas"]["io.k8s.api.core.v1.ContainerPort"][];
            readinessProbe?: components["schemas"]["io.k8s.api.core.v1.Probe"];
            resizePolicy?: components["schemas"]["io.k8s.api.core.v1.ContainerResizePolicy"][];
            resources?: components["schemas"]["io.k8s.api.core.v1.ResourceRequirements"];
            restartPolicy?: string;
            restartPolicyRules?: components["schemas"]["io.k8s.api.core.v1.ContainerRestartRule"][];
            securityContext?: components["schemas"]["io.k8s.api.core.v1.SecurityContext"];
            startupProbe?: components["schemas"]["io.k8s.api.core.v1.Probe"];
            stdin?: boolean;
            stdinOnce?: boolean;
            terminationMessagePath?: string;
            terminationMessagePolicy?: string;
            tty?: boolean;
            volumeDevices?: components["schemas"]["io.k8s.api.core.v1.VolumeDevice"][];
            volumeMounts?: components["schemas"]["io.k8s.api.core.v1.VolumeMount"][];
            workingDir?: string;
        };
        "io.k8s.api.core.v1.ContainerExtendedResourceRequest": {
            containerName: string;
            requestName: string;
            resourceName: string;
        };
        "io.k8s.api.core.v1.ContainerImage": {
            names?: string[];
            /** Format: int64 */
            sizeBytes?: number;
        };
        "io.k8s.api.core.v1.ContainerPort": {
            /** Format: int32 */
            containerPort: number;
            hostIP?: string;
            /** Format: int32 */
            hostPort?: number;
            name?: string;
            protocol?: string;
        };
        "io.k8s.api.core.v1.ContainerResizePolicy": {
            resourceName: string;
            restartPolicy: string;
        };
        "io.k8s.api.core.v1.ContainerRestartRule": {
            action: string;
            exitCodes?: components["schemas"]["io.k8s.api.core.v1.ContainerRestartRuleOnExitCodes"];
        };
        "io.k8s.api.core.v1.ContainerRestartRuleOnExitCodes": {
            operator: string;
            values?: number[];
        };
        "io.k8s.api.core.v1.ContainerState": {
            running?: components["schemas"]["io.k8s.api.core.v1.ContainerStateRunning"];
            terminated?: components["schemas"]["io.k8s.api.core.v1.ContainerStateTerminated"];
            waiting?: components["schemas"]["io.k8s.api.core.v1.ContainerStateWaiting"];
        };
        "io.k8s.api.core.v1.ContainerStateRunning": {
            startedAt?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
        };
        "io.k8s.api.core.v1.ContainerStateTerminated": {
            containerID?: string;
            /** Format: int32 */
            exitCode: number;
            finishedAt?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            message?: string;
            reason?: string;
            /** Format: int32 */
            signal?: number;
            startedAt?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
        };
        "io.k8s.api.core.v1.ContainerStateWaiting": {
            message?: string;
            reason?: string;
        };
        "io.k8s.api.core.v1.ContainerStatus": {
            allocatedResources?: {
                [key: string]: components["schemas"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
            };
            allocatedResourcesStatus?: components["schemas"]["io.k8s.api.core.v1.ResourceStatus"][];
            containerID?: string;
            image: string;
            imageID: string;
            lastState?: components["schemas"]["io.k8s.api.core.v1.ContainerState"];
            name: string;
            ready: boolean;
            resources?: components["schemas"]["io.k8s.api.core.v1.ResourceRequirements"];
            /** Format: int32 */
            restartCount: number;
            started?: boolean;
            state?: components["schemas"]["io.k8s.api.core.v1.ContainerState"];
            stopSignal?: string;
            user?: components["schemas"]["io.k8s.api.core.v1.ContainerUser"];
            volumeMounts?: components["schemas"]["io.k8s.api.core.v1.VolumeMountStatus"][];
        };
        "io.k8s.api.core.v1.ContainerUser": {
            linux?: components["schemas"]["io.k8s.api.core.v1.LinuxContainerUser"];
        };
        "io.k8s.api.core.v1.DaemonEndpoint": {
            /** Format: int32 */
            Port: number;
        };
        "io.k8s.api.core.v1.DownwardAPIProjection": {
            items?: components["schemas"]["io.k8s.api.core.v1.DownwardAPIVolumeFile"][];
        };
        "io.k8s.api.core.v1.DownwardAPIVolumeFile": {
            fieldRef?: components["schemas"]["io.k8s.api.core.v1.ObjectFieldSelector"];
            /** Format: int32 */
            mode?: number;
            path: string;
            resourceFieldRef?: components["schemas"]["io.k8s.api.core.v1.ResourceFieldSelector"];
        };
        "io.k8s.api.core.v1.DownwardAPIVolumeSource": {
            /** Format: int32 */
            defaultMode?: number;
            items?: components["schemas"]["io.k8s.api.core.v1.DownwardAPIVolumeFile"][];
        };
        "io.k8s.api.core.v1.EmptyDirVolumeSource": {
            medium?: string;
            sizeLimit?: components["schemas"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
        };
        "io.k8s.api.core.v1.EnvFromSource": {
            configMapRef?: components["schemas"]["io.k8s.api.core.v1.ConfigMapEnvSource"];
            prefix?: string;
            secretRef?: components["schemas"]["io.k8s.api.core.v1.SecretEnvSource"];
        };
        "io.k8s.api.core.v1.EnvVar": {
            name: string;
            value?: string;
            valueFrom?: components["schemas"]["io.k8s.api.core.v1.EnvVarSource"];
        };
        "io.k8s.api.core.v1.EnvVarSource": {
            configMapKeyRef?: components["schemas"]["io.k8s.api.core.v1.ConfigMapKeySelector"];
            fieldRef?: components["schemas"]["io.k8s.api.core.v1.ObjectFieldSelector"];
            fileKeyRef?: components["schemas"]["io.k8s.api.core.v1.FileKeySelector"];
            resourceFieldRef?: components["schemas"]["io.k8s.api.core.v1.ResourceFieldSelector"];
            secretKeyRef?: components["schemas"]["io.k8s.api.core.v1.SecretKeySelector"];
        };
        "io.k8s.api.core.v1.EphemeralContainer": {
            args?: string[];
            command?: string[];
            env?: components["schemas"]["io.k8s.api.core.v1.EnvVar"][];
            envFrom?: components["schemas"]["io.k8s.api.core.v1.EnvFromSource"][];
            image?: string;
            imagePullPolicy?: string;
            lifecycle?: components["schemas"]["io.k8s.api.core.v1.Lifecycle"];
            livenessProbe?: components["schemas"]["io.k8s.api.core.v1.Probe"];
            name: string;
            ports?: components["schemas"]["io.k8s.api.core.v1.ContainerPort"][];
            readinessProbe?: components["schemas"]["io.k8s.api.core.v1.Probe"];
            resizePolicy?: components["schemas"]["io.k8s.api.core.v1.ContainerResizePolicy"][];
            resources?: components["schemas"]["io.k8s.api.core.v1.ResourceRequirements"];
            restartPolicy?: string;
            restartPolicyRules?: components["schemas"]["io.k8s.api.core.v1.ContainerRestartRule"][];
            securityContext?: components["schemas"]["io.k8s.api.core.v1.SecurityContext"];
            startupProbe?: components["schemas"]["io.k8s.api.core.v1.Probe"];
            stdin?: boolean;
            stdinOnce?: boolean;
            targetContainerName?: string;
            terminationMessagePath?: string;
            terminationMessagePolicy?: string;
            tty?: boolean;
            volumeDevices?: components["schemas"]["io.k8s.api.core.v1.VolumeDevice"][];
            volumeMounts?: components["schemas"]["io.k8s.api.core.v1.VolumeMount"][];
            workingDir?: string;
        };
        "io.k8s.api.core.v1.EphemeralVolumeSource": {
            volumeClaimTemplate?: components["schemas"]["io.k8s.api.core.v1.PersistentVolumeClaimTemplate"];
        };
        "io.k8s.api.core.v1.EventSource": {
            component?: string;
            host?: string;
        };
        "io.k8s.api.core.v1.ExecAction": {
            command?: string[];
        };
        "io.k8s.api.core.v1.FCVolumeSource": {
            fsType?: string;
            /** Format: int32 */
            lun?: number;
            readOnly?: boolean;
            targetWWNs?: string[];
            wwids?: string[];
        };
        "io.k8s.api.core.v1.FileKeySelector": {
            key: string;
            optional?: boolean;
            path: string;
            volumeName: string;
        };
        "io.k8s.api.core.v1.FlexVolumeSource": {
            driver: string;
            fsType?: string;
            options?: {
                [key: string]: string;
            };
            readOnly?: boolean;
            secretRef?: components["schemas"]["io.k8s.api.core.v1.LocalObjectReference"];
        };
        "io.k8s.api.core.v1.FlockerVolumeSource": {
            datasetName?: string;
            datasetUUID?: string;
        };
        "io.k8s.api.core.v1.GCEPersistentDiskVolumeSource": {
            fsType?: string;
            /** Format: int32 */
            partition?: number;
            pdName: string;
            readOnly?: boolean;
        };
        "io.k8s.api.core.v1.GRPCAction": {
            /** Format: int32 */
            port: number;
            service?: string;
        };
        "io.k8s.api.core.v1.GitRepoVolumeSource": {
            directory?: string;
            repository: string;
            revision?: string;
        };
        "io.k8s.api.core.v1.GlusterfsVolumeSource": {
            endpoints: string;
            path: string;
            readOnly?: boolean;
        };
        "io.k8s.api.core.v1.HTTPGetAction": {
            host?: string;
            httpHeaders?: components["schemas"]["io.k8s.api.core.v1.HTTPHeader"][];
            path?: string;
            port: components["schemas"]["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
            scheme?: string;
        };
        "io.k8s.api.core.v1.HTTPHeader": {
            name: string;
            value: string;
        };
        "io.k8s.api.core.v1.HostAlias": {
            hostnames?: string[];
            ip: string;
        };
        "io.k8s.api.core.v1.HostIP": {
            ip: string;
        };
        "io.k8s.api.core.v1.HostPathVolumeSource": {
            path: string;
            type?: string;
        };
        "io.k8s.api.core.v1.ISCSIVolumeSource": {
            chapAuthDiscovery?: boolean;
            chapAuthSession?: boolean;
            fsType?: string;
            initiatorName?: string;
            iqn: string;
            iscsiInterface?: string;
            /** Format: int32 */
            lun: number;
            portals?: string[];
            readOnly?: boolean;
            secretRef?: components["schemas"]["io.k8s.api.core.v1.LocalObjectReference"];
            targetPortal: string;
        };
        "io.k8s.api.core.v1.ImageVolumeSource": {
            pullPolicy?: string;
            reference?: string;
        };
        "io.k8s.api.core.v1.KeyToPath": {
            key: string;
            /** Format: int32 */
            mode?: number;
            path: string;
        };
        "io.k8s.api.core.v1.Lifecycle": {
            postStart?: components["schemas"]["io.k8s.api.core.v1.LifecycleHandler"];
            preStop?: components["schemas"]["io.k8s.api.core.v1.LifecycleHandler"];
            stopSignal?: string;
        };
        "io.k8s.api.core.v1.LifecycleHandler": {
            exec?: components["schemas"]["io.k8s.api.core.v1.ExecAction"];
            httpGet?: components["schemas"]["io.k8s.api.core.v1.HTTPGetAction"];
            sleep?: components["schemas"]["io.k8s.api.core.v1.SleepAction"];
            tcpSocket?: components["schemas"]["io.k8s.api.core.v1.TCPSocketAction"];
        };
        "io.k8s.api.core.v1.LinuxContainerUser": {
            /** Format: int64 */
            gid: number;
            supplementalGroups?: number[];
            /** Format: int64 */
            uid: number;
        };
        "io.k8s.api.core.v1.LoadBalancerIngress": {
            hostname?: string;
            ip?: string;
            ipMode?: string;
            ports?: components["schemas"]["io.k8s.api.core.v1.PortStatus"][];
        };
        "io.k8s.api.core.v1.LoadBalancerStatus": {
            ingress?: components["schemas"]["io.k8s.api.core.v1.LoadBalancerIngress"][];
        };
        "io.k8s.api.core.v1.LocalObjectReference": {
            name?: string;
        };
        "io.k8s.api.core.v1.NFSVolumeSource": {
            path: string;
            readOnly?: boolean;
            server: string;
        };
        "io.k8s.api.core.v1.Namespace": {
            apiVersion?: string;
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
            spec?: components["schemas"]["io.k8s.api.core.v1.NamespaceSpec"];
            status?: components["schemas"]["io.k8s.api.core.v1.NamespaceStatus"];
        };
        "io.k8s.api.core.v1.NamespaceCondition": {
            lastTransitionTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            message?: string;
            reason?: string;
            status: string;
            type: string;
        };
        "io.k8s.api.core.v1.NamespaceSpec": {
            finalizers?: string[];
        };
        "io.k8s.api.core.v1.NamespaceStatus": {
            conditions?: components["schemas"]["io.k8s.api.core.v1.NamespaceCondition"][];
            phase?: string;
        };
        "io.k8s.api.core.v1.Node": {
            apiVersion?: string;
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
            spec?: components["schemas"]["io.k8s.api.core.v1.NodeSpec"];
            status?: components["schemas"]["io.k8s.api.core.v1.NodeStatus"];
        };
        "io.k8s.api.core.v1.NodeAddress": {
            address: string;
            type: string;
        };
        "io.k8s.api.core.v1.NodeAffinity": {
            preferredDuringSchedulingIgnoredDuringExecution?: components["schemas"]["io.k8s.api.core.v1.PreferredSchedulingTerm"][];
            requiredDuringSchedulingIgnoredDuringExecution?: components["schemas"]["io.k8s.api.core.v1.NodeSelector"];
        };
        "io.k8s.api.core.v1.NodeCondition": {
            lastHeartbeatTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            lastTransitionTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            message?: string;
            reason?: string;
            status: string;
            type: string;
        };
        "io.k8s.api.core.v1.NodeConfigSource": {
            configMap?: components["schemas"]["io.k8s.api.core.v1.ConfigMapNodeConfigSource"];
        };
        "io.k8s.api.core.v1.NodeConfigStatus": {
            active?: components["schemas"]["io.k8s.api.core.v1.NodeConfigSource"];
            assigned?: components["schemas"]["io.k8s.api.core.v1.NodeConfigSource"];
            error?: string;
            lastKnownGood?: components["schemas"]["io.k8s.api.core.v1.NodeConfigSource"];
        };
        "io.k8s.api.core.v1.NodeDaemonEndpoints": {
            kubeletEndpoint?: components["schemas"]["io.k8s.api.core.v1.DaemonEndpoint"];
        };
        "io.k8s.api.core.v1.NodeFeatures": {
            supplementalGroupsPolicy?: boolean;
        };
        "io.k8s.api.core.v1.NodeRuntimeHandler": {
            features?: components["schemas"]["io.k8s.api.core.v1.NodeRuntimeHandlerFeatures"];
            name?: string;
        };
        "io.k8s.api.core.v1.NodeRuntimeHandlerFeatures": {
            recursiveReadOnlyMounts?: boolean;
            userNamespaces?: boolean;
        };
        "io.k8s.api.core.v1.NodeSelector": {
            nodeSelectorTerms: components["schemas"]["io.k8s.api.core.v1.NodeSelectorTerm"][];
        };
        "io.k8s.api.core.v1.NodeSelectorRequirement": {
            key: string;
            operator: string;
            values?: string[];
        };
        "io.k8s.api.core.v1.NodeSelectorTerm": {
            matchExpressions?: components["schemas"]["io.k8s.api.core.v1.NodeSelectorRequirement"][];
            matchFields?: components["schemas"]["io.k8s.api.core.v1.NodeSelectorRequirement"][];
        };
        "io.k8s.api.core.v1.NodeSpec": {
            configSource?: components["schemas"]["io.k8s.api.core.v1.NodeConfigSource"];
            externalID?: string;
            podCIDR?: string;
            podCIDRs?: string[];
            providerID?: string;
            taints?: components["schemas"]["io.k8s.api.core.v1.Taint"][];
            unschedulable?: boolean;
        };
        "io.k8s.api.core.v1.NodeStatus": {
            addresses?: components["schemas"]["io.k8s.api.core.v1.NodeAddress"][];
            allocatable?: {
                [key: string]: components["schemas"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
            };
            capacity?: {
                [key: string]: components["schemas"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
            };
            conditions?: components["schemas"]["io.k8s.api.core.v1.NodeCondition"][];
            config?: components["schemas"]["io.k8s.api.core.v1.NodeConfigStatus"];
            daemonEndpoints?: components["schemas"]["io.k8s.api.core.v1.NodeDaemonEndpoints"];
            declaredFeatures?: string[];
            features?: components["schemas"]["io.k8s.api.core.v1.NodeFeatures"];
            images?: components["schemas"]["io.k8s.api.core.v1.ContainerImage"][];
            nodeInfo?: components["schemas"]["io.k8s.api.core.v1.NodeSystemInfo"];
            phase?: string;
            runtimeHandlers?: components["schemas"]["io.k8s.api.core.v1.NodeRuntimeHandler"][];
            volumesAttached?: components["schemas"]["io.k8s.api.core.v1.AttachedVolume"][];
            volumesInUse?: string[];
        };
        "io.k8s.api.core.v1.NodeSwapStatus": {
            /** Format: int64 */
            capacity?: number;
        };
        "io.k8s.api.core.v1.NodeSystemInfo": {
            architecture: string;
            bootID: string;
            containerRuntimeVersion: string;
            kernelVersion: string;
            kubeProxyVersion: string;
            kubeletVersion: string;
            machineID: string;
            operatingSystem: string;
            osImage: string;
            swap?: components["schemas"]["io.k8s.api.core.v1.NodeSwapStatus"];
            systemUUID: string;
        };
        "io.k8s.api.core.v1.ObjectFieldSelector": {
            apiVersion?: string;
            fieldPath: string;
        };
        "io.k8s.api.core.v1.ObjectReference": {
            apiVersion?: string;
            fieldPath?: string;
            kind?: string;
            name?: string;
            namespace?: string;
            resourceVersion?: string;
            uid?: string;
        };
        "io.k8s.api.core.v1.PersistentVolumeClaimSpec": {
            accessModes?: string[];
            dataSource?: components["schemas"]["io.k8s.api.core.v1.TypedLocalObjectReference"];
            dataSourceRef?: components["schemas"]["io.k8s.api.core.v1.TypedObjectReference"];
            resources?: components["schemas"]["io.k8s.api.core.v1.VolumeResourceRequirements"];
            selector?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
            storageClassName?: string;
            volumeAttributesClassName?: string;
            volumeMode?: string;
            volumeName?: string;
        };
        "io.k8s.api.core.v1.PersistentVolumeClaimTemplate": {
            /** ObjectMeta */
            metadata?: ObjectMeta;
            spec: components["schemas"]["io.k8s.api.core.v1.PersistentVolumeClaimSpec"];
        };
        "io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource": {
            claimName: string;
            readOnly?: boolean;
        };
        "io.k8s.api.core.v1.PhotonPersistentDiskVolumeSource": {
            fsType?: string;
            pdID: string;
        };
        "io.k8s.api.core.v1.Pod": {
            apiVersion?: string;
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
            spec?: components["schemas"]["io.k8s.api.core.v1.PodSpec"];
            status?: components["schemas"]["io.k8s.api.core.v1.PodStatus"];
        };
        "io.k8s.api.core.v1.PodAffinity": {
            preferredDuringSchedulingIgnoredDuringExecution?: components["schemas"]["io.k8s.api.core.v1.WeightedPodAffinityTerm"][];
            requiredDuringSchedulingIgnoredDuringExecution?: components["schemas"]["io.k8s.api.core.v1.PodAffinityTerm"][];
        };
        "io.k8s.api.core.v1.PodAffinityTerm": {
            labelSelector?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
            matchLabelKeys?: string[];
            mismatchLabelKeys?: string[];
            namespaceSelector?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
            namespaces?: string[];
            topologyKey: string;
        };
        "io.k8s.api.core.v1.PodAntiAffinity": {
            preferredDuringSchedulingIgnoredDuringExecution?: components["schemas"]["io.k8s.api.core.v1.WeightedPodAffinityTerm"][];
            requiredDuringSchedulingIgnoredDuringExecution?: components["schemas"]["io.k8s.api.core.v1.PodAffinityTerm"][];
        };
        "io.k8s.api.core.v1.PodCertificateProjection": {
            certificateChainPath?: string;
            credentialBundlePath?: string;
            keyPath?: string;
            keyType: string;
            /** Format: int32 */
            maxExpirationSeconds?: number;
            signerName: string;
            userAnnotations?: {
                [key: string]: string;
            };
        };
        "io.k8s.api.core.v1.PodCondition": {
            lastProbeTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            lastTransitionTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            message?: string;
            /** Format: int64 */
            observedGeneration?: number;
            reason?: string;
            status: string;
            type: string;
        };
        "io.k8s.api.core.v1.PodDNSConfig": {
            nameservers?: string[];
            options?: components["schemas"]["io.k8s.api.core.v1.PodDNSConfigOption"][];
            searches?: string[];
        };
        "io.k8s.api.core.v1.PodDNSConfigOption": {
            name?: string;
            value?: string;
        };
        "io.k8s.api.core.v1.PodExtendedResourceClaimStatus": {
            requestMappings: components["schemas"]["io.k8s.api.core.v1.ContainerExtendedResourceRequest"][];
            resourceClaimName: string;
        };
        "io.k8s.api.core.v1.PodIP": {
            ip: string;
        };
        "io.k8s.api.core.v1.PodOS": {
            name: string;
        };
        "io.k8s.api.core.v1.PodReadinessGate": {
            conditionType: string;
        };
        "io.k8s.api.core.v1.PodResourceClaim": {
            name: string;
            resourceClaimName?: string;
            resourceClaimTemplateName?: string;
        };
        "io.k8s.api.core.v1.PodResourceClaimStatus": {
            name: string;
            resourceClaimName?: string;
        };
        "io.k8s.api.core.v1.PodSchedulingGate": {
            name: string;
        };
        "io.k8s.api.core.v1.PodSecurityContext": {
            appArmorProfile?: components["schemas"]["io.k8s.api.core.v1.AppArmorProfile"];
            /** Format: int64 */
            fsGroup?: number;
            fsGroupChangePolicy?: string;
            /** Format: int64 */
            runAsGroup?: number;
            runAsNonRoot?: boolean;
            /** Format: int64 */
            runAsUser?: number;
            seLinuxChangePolicy?: string;
            seLinuxOptions?: components["schemas"]["io.k8s.api.core.v1.SELinuxOptions"];
            seccompProfile?: components["schemas"]["io.k8s.api.core.v1.SeccompProfile"];
            supplementalGroups?: number[];
            supplementalGroupsPolicy?: string;
            sysctls?: components["schemas"]["io.k8s.api.core.v1.Sysctl"][];
            windowsOptions?: components["schemas"]["io.k8s.api.core.v1.WindowsSecurityContextOptions"];
        };
        "io.k8s.api.core.v1.PodSpec": {
            /** Format: int64 */
            activeDeadlineSeconds?: number;
            affinity?: components["schemas"]["io.k8s.api.core.v1.Affinity"];
            automountServiceAccountToken?: boolean;
            containers: components["schemas"]["io.k8s.api.core.v1.Container"][];
            dnsConfig?: components["schemas"]["io.k8s.api.core.v1.PodDNSConfig"];
            dnsPolicy?: string;
            enableServiceLinks?: boolean;
            ephemeralContainers?: components["schemas"]["io.k8s.api.core.v1.EphemeralContainer"][];
            hostAliases?: components["schemas"]["io.k8s.api.core.v1.HostAlias"][];
            hostIPC?: boolean;
            hostNetwork?: boolean;
            hostPID?: boolean;
            hostUsers?: boolean;
            hostname?: string;
            hostnameOverride?: string;
            imagePullSecrets?: components["schemas"]["io.k8s.api.core.v1.LocalObjectReference"][];
            initContainers?: components["schemas"]["io.k8s.api.core.v1.Container"][];
            nodeName?: string;
            nodeSelector?: {
                [key: string]: string;
            };
            os?: components["schemas"]["io.k8s.api.core.v1.PodOS"];
            overhead?: {
                [key: string]: components["schemas"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
            };
            preemptionPolicy?: string;
            /** Format: int32 */
            priority?: number;
            priorityClassName?: string;
            readinessGates?: components["schemas"]["io.k8s.api.core.v1.PodReadinessGate"][];
            resourceClaims?: components["schemas"]["io.k8s.api.core.v1.PodResourceClaim"][];
            resources?: components["schemas"]["io.k8s.api.core.v1.ResourceRequirements"];
            restartPolicy?: string;
            runtimeClassName?: string;
            schedulerName?: string;
            schedulingGates?: components["schemas"]["io.k8s.api.core.v1.PodSchedulingGate"][];
            securityContext?: components["schemas"]["io.k8s.api.core.v1.PodSecurityContext"];
            serviceAccount?: string;
            serviceAccountName?: string;
            setHostnameAsFQDN?: boolean;
            shareProcessNamespace?: boolean;
            subdomain?: string;
            /** Format: int64 */
            terminationGracePeriodSeconds?: number;
            tolerations?: components["schemas"]["io.k8s.api.core.v1.Toleration"][];
            topologySpreadConstraints?: components["schemas"]["io.k8s.api.core.v1.TopologySpreadConstraint"][];
            volumes?: components["schemas"]["io.k8s.api.core.v1.Volume"][];
            workloadRef?: components["schemas"]["io.k8s.api.core.v1.WorkloadReference"];
        };
        "io.k8s.api.core.v1.PodStatus": {
            allocatedResources?: {
                [key: string]: components["schemas"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
            };
            conditions?: components["schemas"]["io.k8s.api.core.v1.PodCondition"][];
            containerStatuses?: components["schemas"]["io.k8s.api.core.v1.ContainerStatus"][];
            ephemeralContainerStatuses?: components["schemas"]["io.k8s.api.core.v1.ContainerStatus"][];
            extendedResourceClaimStatus?: components["schemas"]["io.k8s.api.core.v1.PodExtendedResourceClaimStatus"];
            hostIP?: string;
            hostIPs?: components["schemas"]["io.k8s.api.core.v1.HostIP"][];
            initContainerStatuses?: components["schemas"]["io.k8s.api.core.v1.ContainerStatus"][];
            message?: string;
            nominatedNodeName?: string;
            /** Format: int64 */
            observedGeneration?: number;
            phase?: string;
            podIP?: string;
            podIPs?: components["schemas"]["io.k8s.api.core.v1.PodIP"][];
            qosClass?: string;
            reason?: string;
            resize?: string;
            resourceClaimStatuses?: components["schemas"]["io.k8s.api.core.v1.PodResourceClaimStatus"][];
            resources?: components["schemas"]["io.k8s.api.core.v1.ResourceRequirements"];
            startTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
        };
        "io.k8s.api.core.v1.PodTemplateSpec": {
            /** ObjectMeta */
            metadata?: ObjectMeta;
            spec?: components["schemas"]["io.k8s.api.core.v1.PodSpec"];
        };
        "io.k8s.api.core.v1.PortStatus": {
            error?: string;
            /** Format: int32 */
            port: number;
            protocol: string;
        };
        "io.k8s.api.core.v1.PortworxVolumeSource": {
            fsType?: string;
            readOnly?: boolean;
            volumeID: string;
        };
        "io.k8s.api.core.v1.PreferredSchedulingTerm": {
            preference: components["schemas"]["io.k8s.api.core.v1.NodeSelectorTerm"];
            /** Format: int32 */
            weight: number;
        };
        "io.k8s.api.core.v1.Probe": {
            exec?: components["schemas"]["io.k8s.api.core.v1.ExecAction"];
            /** Format: int32 */
            failureThreshold?: number;
            grpc?: components["schemas"]["io.k8s.api.core.v1.GRPCAction"];
            httpGet?: components["schemas"]["io.k8s.api.core.v1.HTTPGetAction"];
            /** Format: int32 */
            initialDelaySeconds?: number;
            /** Format: int32 */
            periodSeconds?: number;
            /** Format: int32 */
            successThreshold?: number;
            tcpSocket?: components["schemas"]["io.k8s.api.core.v1.TCPSocketAction"];
            /** Format: int64 */
            terminationGracePeriodSeconds?: number;
            /** Format: int32 */
            timeoutSeconds?: number;
        };
        "io.k8s.api.core.v1.ProjectedVolumeSource": {
            /** Format: int32 */
            defaultMode?: number;
            sources?: components["schemas"]["io.k8s.api.core.v1.VolumeProjection"][];
        };
        "io.k8s.api.core.v1.QuobyteVolumeSource": {
            group?: string;
            readOnly?: boolean;
            registry: string;
            tenant?: string;
            user?: string;
            volume: string;
        };
        "io.k8s.api.core.v1.RBDVolumeSource": {
            fsType?: string;
            image: string;
            keyring?: string;
            monitors: string[];
            pool?: string;
            readOnly?: boolean;
            secretRef?: components["schemas"]["io.k8s.api.core.v1.LocalObjectReference"];
            user?: string;
        };
        "io.k8s.api.core.v1.ResourceClaim": {
            name: string;
            request?: string;
        };
        "io.k8s.api.core.v1.ResourceFieldSelector": {
            containerName?: string;
            divisor?: components["schemas"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
            resource: string;
        };
        "io.k8s.api.core.v1.ResourceHealth": {
            health?: string;
            resourceID: string;
        };
        "io.k8s.api.core.v1.ResourceRequirements": {
            claims?: components["schemas"]["io.k8s.api.core.v1.ResourceClaim"][];
            limits?: {
                [key: string]: components["schemas"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
            };
            requests?: {
                [key: string]: components["schemas"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
            };
        };
        "io.k8s.api.core.v1.ResourceStatus": {
            name: string;
            resources?: components["schemas"]["io.k8s.api.core.v1.ResourceHealth"][];
        };
        "io.k8s.api.core.v1.SELinuxOptions": {
            level?: string;
            role?: string;
            type?: string;
            user?: string;
        };
        "io.k8s.api.core.v1.ScaleIOVolumeSource": {
            fsType?: string;
            gateway: string;
            protectionDomain?: string;
            readOnly?: boolean;
            secretRef: components["schemas"]["io.k8s.api.core.v1.LocalObjectReference"];
            sslEnabled?: boolean;
            storageMode?: string;
            storagePool?: string;
            system: string;
            volumeName?: string;
        };
        "io.k8s.api.core.v1.SeccompProfile": {
            localhostProfile?: string;
            type: string;
        };
        "io.k8s.api.core.v1.Secret": {
            apiVersion?: string;
            data?: {
                [key: string]: string;
            };
            immutable?: boolean;
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
            stringData?: {
                [key: string]: string;
            };
            type?: string;
        };
        "io.k8s.api.core.v1.SecretEnvSource": {
            name?: string;
            optional?: boolean;
        };
        "io.k8s.api.core.v1.SecretKeySelector": {
            key: string;
            name?: string;
            optional?: boolean;
        };
        "io.k8s.api.core.v1.SecretProjection": {
            items?: components["schemas"]["io.k8s.api.core.v1.KeyToPath"][];
            name?: string;
            optional?: boolean;
        };
        "io.k8s.api.core.v1.SecretVolumeSource": {
            /** Format: int32 */
            defaultMode?: number;
            items?: components["schemas"]["io.k8s.api.core.v1.KeyToPath"][];
            optional?: boolean;
            secretName?: string;
        };
        "io.k8s.api.core.v1.SecurityContext": {
            allowPrivilegeEscalation?: boolean;
            appArmorProfile?: components["schemas"]["io.k8s.api.core.v1.AppArmorProfile"];
            capabilities?: components["schemas"]["io.k8s.api.core.v1.Capabilities"];
            privileged?: boolean;
            procMount?: string;
            readOnlyRootFilesystem?: boolean;
            /** Format: int64 */
            runAsGroup?: number;
            runAsNonRoot?: boolean;
            /** Format: int64 */
            runAsUser?: number;
            seLinuxOptions?: components["schemas"]["io.k8s.api.core.v1.SELinuxOptions"];
            seccompProfile?: components["schemas"]["io.k8s.api.core.v1.SeccompProfile"];
            windowsOptions?: components["schemas"]["io.k8s.api.core.v1.WindowsSecurityContextOptions"];
        };
        "io.k8s.api.core.v1.Service": {
            apiVersion?: string;
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
            spec?: components["schemas"]["io.k8s.api.core.v1.ServiceSpec"];
            status?: components["schemas"]["io.k8s.api.core.v1.ServiceStatus"];
        };
        "io.k8s.api.core.v1.ServiceAccount": {
            apiVersion?: string;
            automountServiceAccountToken?: boolean;
            imagePullSecrets?: components["schemas"]["io.k8s.api.core.v1.LocalObjectReference"][];
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
            secrets?: components["schemas"]["io.k8s.api.core.v1.ObjectReference"][];
        };
        "io.k8s.api.core.v1.ServiceAccountTokenProjection": {
            audience?: string;
            /** Format: int64 */
            expirationSeconds?: number;
            path: string;
        };
        "io.k8s.api.core.v1.ServicePort": {
            appProtocol?: string;
            name?: string;
            /** Format: int32 */
            nodePort?: number;
            /** Format: int32 */
            port: number;
            protocol?: string;
            targetPort?: components["schemas"]["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
        };
        "io.k8s.api.core.v1.ServiceSpec": {
            allocateLoadBalancerNodePorts?: boolean;
            clusterIP?: string;
            clusterIPs?: string[];
            externalIPs?: string[];
            externalName?: string;
            externalTrafficPolicy?: string;
            /** Format: int32 */
            healthCheckNodePort?: number;
            internalTrafficPolicy?: string;
            ipFamilies?: string[];
            ipFamilyPolicy?: string;
            loadBalancerClass?: string;
            loadBalancerIP?: string;
            loadBalancerSourceRanges?: string[];
            ports?: components["schemas"]["io.k8s.api.core.v1.ServicePort"][];
            publishNotReadyAddresses?: boolean;
            selector?: {
                [key: string]: string;
            };
            sessionAffinity?: string;
            sessionAffinityConfig?: components["schemas"]["io.k8s.api.core.v1.SessionAffinityConfig"];
            trafficDistribution?: string;
            type?: string;
        };
        "io.k8s.api.core.v1.ServiceStatus": {
            conditions?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Condition"][];
            loadBalancer?: components["schemas"]["io.k8s.api.core.v1.LoadBalancerStatus"];
        };
        "io.k8s.api.core.v1.SessionAffinityConfig": {
            clientIP?: components["schemas"]["io.k8s.api.core.v1.ClientIPConfig"];
        };
        "io.k8s.api.core.v1.SleepAction": {
            /** Format: int64 */
            seconds: number;
        };
        "io.k8s.api.core.v1.StorageOSVolumeSource": {
            fsType?: string;
            readOnly?: boolean;
            secretRef?: components["schemas"]["io.k8s.api.core.v1.LocalObjectReference"];
            volumeName?: string;
            volumeNamespace?: string;
        };
        "io.k8s.api.core.v1.Sysctl": {
            name: string;
            value: string;
        };
        "io.k8s.api.core.v1.TCPSocketAction": {
            host?: string;
            port: components["schemas"]["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
        };
        "io.k8s.api.core.v1.Taint": {
            effect: string;
            key: string;
            timeAdded?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            value?: string;
        };
        "io.k8s.api.core.v1.Toleration": {
            effect?: string;
            key?: string;
            operator?: string;
            /** Format: int64 */
            tolerationSeconds?: number;
            value?: string;
        };
        "io.k8s.api.core.v1.TopologySpreadConstraint": {
            labelSelector?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
            matchLabelKeys?: string[];
            /** Format: int32 */
            maxSkew: number;
            /** Format: int32 */
            minDomains?: number;
            nodeAffinityPolicy?: string;
            nodeTaintsPolicy?: string;
            topologyKey: string;
            whenUnsatisfiable: string;
        };
        "io.k8s.api.core.v1.TypedLocalObjectReference": {
            apiGroup?: string;
            kind: string;
            name: string;
        };
        "io.k8s.api.core.v1.TypedObjectReference": {
            apiGroup?: string;
            kind: string;
            name: string;
            namespace?: string;
        };
        "io.k8s.api.core.v1.Volume": {
            awsElasticBlockStore?: components["schemas"]["io.k8s.api.core.v1.AWSElasticBlockStoreVolumeSource"];
            azureDisk?: components["schemas"]["io.k8s.api.core.v1.AzureDiskVolumeSource"];
            azureFile?: components["schemas"]["io.k8s.api.core.v1.AzureFileVolumeSource"];
            cephfs?: components["schemas"]["io.k8s.api.core.v1.CephFSVolumeSource"];
            cinder?: components["schemas"]["io.k8s.api.core.v1.CinderVolumeSource"];
            configMap?: components["schemas"]["io.k8s.api.core.v1.ConfigMapVolumeSource"];
            csi?: components["schemas"]["io.k8s.api.core.v1.CSIVolumeSource"];
            downwardAPI?: components["schemas"]["io.k8s.api.core.v1.DownwardAPIVolumeSource"];
            emptyDir?: components["schemas"]["io.k8s.api.core.v1.EmptyDirVolumeSource"];
            ephemeral?: components["schemas"]["io.k8s.api.core.v1.EphemeralVolumeSource"];
            fc?: components["schemas"]["io.k8s.api.core.v1.FCVolumeSource"];
            flexVolume?: components["schemas"]["io.k8s.api.core.v1.FlexVolumeSource"];
            flocker?: components["schemas"]["io.k8s.api.core.v1.FlockerVolumeSource"];
            gcePersistentDisk?: components["schemas"]["io.k8s.api.core.v1.GCEPersistentDiskVolumeSource"];
            gitRepo?: components["schemas"]["io.k8s.api.core.v1.GitRepoVolumeSource"];
            glusterfs?: components["schemas"]["io.k8s.api.core.v1.GlusterfsVolumeSource"];
            hostPath?: components["schemas"]["io.k8s.api.core.v1.HostPathVolumeSource"];
            image?: components["schemas"]["io.k8s.api.core.v1.ImageVolumeSource"];
            iscsi?: components["schemas"]["io.k8s.api.core.v1.ISCSIVolumeSource"];
            name: string;
            nfs?: components["schemas"]["io.k8s.api.core.v1.NFSVolumeSource"];
            persistentVolumeClaim?: components["schemas"]["io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource"];
            photonPersistentDisk?: components["schemas"]["io.k8s.api.core.v1.PhotonPersistentDiskVolumeSource"];
            portworxVolume?: components["schemas"]["io.k8s.api.core.v1.PortworxVolumeSource"];
            projected?: components["schemas"]["io.k8s.api.core.v1.ProjectedVolumeSource"];
            quobyte?: components["schemas"]["io.k8s.api.core.v1.QuobyteVolumeSource"];
            rbd?: components["schemas"]["io.k8s.api.core.v1.RBDVolumeSource"];
            scaleIO?: components["schemas"]["io.k8s.api.core.v1.ScaleIOVolumeSource"];
            secret?: components["schemas"]["io.k8s.api.core.v1.SecretVolumeSource"];
            storageos?: components["schemas"]["io.k8s.api.core.v1.StorageOSVolumeSource"];
            vsphereVolume?: components["schemas"]["io.k8s.api.core.v1.VsphereVirtualDiskVolumeSource"];
        };
        "io.k8s.api.core.v1.VolumeDevice": {
            devicePath: string;
            name: string;
        };
        "io.k8s.api.core.v1.VolumeMount": {
            mountPath: string;
            mountPropagation?: string;
            name: string;
            readOnly?: boolean;
            recursiveReadOnly?: string;
            subPath?: string;
            subPathExpr?: string;
        };
        "io.k8s.api.core.v1.VolumeMountStatus": {
            mountPath: string;
            name: string;
            readOnly?: boolean;
            recursiveReadOnly?: string;
        };
        "io.k8s.api.core.v1.VolumeProjection": {
            clusterTrustBundle?: components["schemas"]["io.k8s.api.core.v1.ClusterTrustBundleProjection"];
            configMap?: components["schemas"]["io.k8s.api.core.v1.ConfigMapProjection"];
            downwardAPI?: components["schemas"]["io.k8s.api.core.v1.DownwardAPIProjection"];
            podCertificate?: components["schemas"]["io.k8s.api.core.v1.PodCertificateProjection"];
            secret?: components["schemas"]["io.k8s.api.core.v1.SecretProjection"];
            serviceAccountToken?: components["schemas"]["io.k8s.api.core.v1.ServiceAccountTokenProjection"];
        };
        "io.k8s.api.core.v1.VolumeResourceRequirements": {
            limits?: {
                [key: string]: components["schemas"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
            };
            requests?: {
                [key: string]: components["schemas"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
            };
        };
        "io.k8s.api.core.v1.VsphereVirtualDiskVolumeSource": {
            fsType?: string;
            storagePolicyID?: string;
            storagePolicyName?: string;
            volumePath: string;
        };
        "io.k8s.api.core.v1.WeightedPodAffinityTerm": {
            podAffinityTerm: components["schemas"]["io.k8s.api.core.v1.PodAffinityTerm"];
            /** Format: int32 */
            weight: number;
        };
        "io.k8s.api.core.v1.WindowsSecurityContextOptions": {
            gmsaCredentialSpec?: string;
            gmsaCredentialSpecName?: string;
            hostProcess?: boolean;
            runAsUserName?: string;
        };
        "io.k8s.api.core.v1.WorkloadReference": {
            name: string;
            podGroup: string;
            podGroupReplicaKey?: string;
        };
        "io.k8s.api.discovery.v1.Endpoint": {
            addresses: string[];
            conditions?: components["schemas"]["io.k8s.api.discovery.v1.EndpointConditions"];
            deprecatedTopology?: {
                [key: string]: string;
            };
            hints?: components["schemas"]["io.k8s.api.discovery.v1.EndpointHints"];
            hostname?: string;
            nodeName?: string;
            targetRef?: components["schemas"]["io.k8s.api.core.v1.ObjectReference"];
            zone?: string;
        };
        "io.k8s.api.discovery.v1.EndpointConditions": {
            ready?: boolean;
            serving?: boolean;
            terminating?: boolean;
        };
        "io.k8s.api.discovery.v1.EndpointHints": {
            forNodes?: components["schemas"]["io.k8s.api.discovery.v1.ForNode"][];
            forZones?: components["schemas"]["io.k8s.api.discovery.v1.ForZone"][];
        };
        "io.k8s.api.discovery.v1.EndpointPort": {
            appProtocol?: string;
            name?: string;
            /** Format: int32 */
            port?: number;
            protocol?: string;
        };
        "io.k8s.api.discovery.v1.EndpointSlice": {
            addressType: string;
            apiVersion?: string;
            endpoints: components["schemas"]["io.k8s.api.discovery.v1.Endpoint"][];
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
            ports?: components["schemas"]["io.k8s.api.discovery.v1.EndpointPort"][];
        };
        "io.k8s.api.discovery.v1.ForNode": {
            name: string;
        };
        "io.k8s.api.discovery.v1.ForZone": {
            name: string;
        };
        "io.k8s.api.events.v1.Event": {
            action?: string;
            apiVersion?: string;
            /** Format: int32 */
            deprecatedCount?: number;
            deprecatedFirstTimestamp?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            deprecatedLastTimestamp?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            deprecatedSource?: components["schemas"]["io.k8s.api.core.v1.EventSource"];
            eventTime: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"];
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
            note?: string;
            reason?: string;
            regarding?: components["schemas"]["io.k8s.api.core.v1.ObjectReference"];
            related?: components["schemas"]["io.k8s.api.core.v1.ObjectReference"];
            reportingController?: string;
            reportingInstance?: string;
            series?: components["schemas"]["io.k8s.api.events.v1.EventSeries"];
            type?: string;
        };
        "io.k8s.api.events.v1.EventSeries": {
            /** Format: int32 */
            count: number;
            lastObservedTime: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"];
        };
        "io.k8s.api.networking.v1.IPBlock": {
            cidr: string;
            except?: string[];
        };
        "io.k8s.api.networking.v1.IngressTLS": {
            hosts?: string[];
            secretName?: string;
        };
        "io.k8s.api.networking.v1.NetworkPolicyEgressRule": {
            ports?: components["schemas"]["io.k8s.api.networking.v1.NetworkPolicyPort"][];
            to?: components["schemas"]["io.k8s.api.networking.v1.NetworkPolicyPeer"][];
        };
        "io.k8s.api.networking.v1.NetworkPolicyIngressRule": {
            from?: components["schemas"]["io.k8s.api.networking.v1.NetworkPolicyPeer"][];
            ports?: components["schemas"]["io.k8s.api.networking.v1.NetworkPolicyPort"][];
        };
        "io.k8s.api.networking.v1.NetworkPolicyPeer": {
            ipBlock?: components["schemas"]["io.k8s.api.networking.v1.IPBlock"];
            namespaceSelector?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
            podSelector?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
        };
        "io.k8s.api.networking.v1.NetworkPolicyPort": {
            /** Format: int32 */
            endPort?: number;
            port?: components["schemas"]["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
            protocol?: string;
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceColumnDefinition": {
            description?: string;
            format?: string;
            jsonPath: string;
            name: string;
            /** Format: int32 */
            priority?: number;
            type: string;
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceConversion": {
            strategy: string;
            webhook?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.WebhookConversion"];
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition": {
            apiVersion?: string;
            kind?: string;
            /** ObjectMeta */
            metadata?: ObjectMeta;
            spec: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec"];
            status?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus"];
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionCondition": {
            lastTransitionTime?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            message?: string;
            /** Format: int64 */
            observedGeneration?: number;
            reason?: string;
            status: string;
            type: string;
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames": {
            categories?: string[];
            kind: string;
            listKind?: string;
            plural: string;
            shortNames?: string[];
            singular?: string;
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec": {
            conversion?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceConversion"];
            group: string;
            names: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames"];
            preserveUnknownFields?: boolean;
            scope: string;
            versions: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion"][];
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus": {
            acceptedNames?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames"];
            conditions?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionCondition"][];
            /** Format: int64 */
            observedGeneration?: number;
            storedVersions?: string[];
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion": {
            additionalPrinterColumns?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceColumnDefinition"][];
            deprecated?: boolean;
            deprecationWarning?: string;
            name: string;
            schema?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceValidation"];
            selectableFields?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.SelectableField"][];
            served: boolean;
            storage: boolean;
            subresources?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresources"];
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceScale": {
            labelSelectorPath?: string;
            specReplicasPath: string;
            statusReplicasPath: string;
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus": Record<string, unknown>;
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresources": {
            scale?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceScale"];
            status?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus"];
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceValidation": {
            openAPIV3Schema?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"];
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ExternalDocumentation": {
            description?: string;
            url?: string;
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": unknown;
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps": {
            $ref?: string;
            $schema?: string;
            additionalItems?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool"];
            additionalProperties?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool"];
            allOf?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"][];
            anyOf?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"][];
            default?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"];
            definitions?: {
                [key: string]: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"];
            };
            dependencies?: {
                [key: string]: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray"];
            };
            description?: string;
            enum?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"][];
            example?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"];
            exclusiveMaximum?: boolean;
            exclusiveMinimum?: boolean;
            externalDocs?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ExternalDocumentation"];
            format?: string;
            id?: string;
            items?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray"];
            /** Format: int64 */
            maxItems?: number;
            /** Format: int64 */
            maxLength?: number;
            /** Format: int64 */
            maxProperties?: number;
            /** Format: double */
            maximum?: number;
            /** Format: int64 */
            minItems?: number;
            /** Format: int64 */
            minLength?: number;
            /** Format: int64 */
            minProperties?: number;
            /** Format: double */
            minimum?: number;
            /** Format: double */
            multipleOf?: number;
            not?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"];
            nullable?: boolean;
            oneOf?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"][];
            pattern?: string;
            patternProperties?: {
                [key: string]: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"];
            };
            properties?: {
                [key: string]: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"];
            };
            required?: string[];
            title?: string;
            type?: string;
            uniqueItems?: boolean;
            "x-kubernetes-embedded-resource"?: boolean;
            "x-kubernetes-int-or-string"?: boolean;
            "x-kubernetes-list-map-keys"?: string[];
            "x-kubernetes-list-type"?: string;
            "x-kubernetes-map-type"?: string;
            "x-kubernetes-preserve-unknown-fields"?: boolean;
            "x-kubernetes-validations"?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ValidationRule"][];
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": unknown;
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": unknown;
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": unknown;
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.SelectableField": {
            jsonPath: string;
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference": {
            name: string;
            namespace: string;
            path?: string;
            /** Format: int32 */
            port?: number;
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ValidationRule": {
            fieldPath?: string;
            message?: string;
            messageExpression?: string;
            optionalOldSelf?: boolean;
            reason?: string;
            rule: string;
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.WebhookClientConfig": {
            /** Format: byte */
            caBundle?: string;
            service?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference"];
            url?: string;
        };
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.WebhookConversion": {
            clientConfig?: components["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.WebhookClientConfig"];
            conversionReviewVersions: string[];
        };
        "io.k8s.apimachinery.pkg.api.resource.Quantity": string | number;
        "io.k8s.apimachinery.pkg.apis.meta.v1.Condition": {
            lastTransitionTime: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Time"];
            message: string;
            /** Format: int64 */
            observedGeneration?: number;
            reason: string;
            status: string;
            type: string;
        };
        "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector": {
            matchExpressions?: components["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement"][];
            matchLabels?: {
                [key: string]: string;
            };
        };
        "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement": {
            key: string;
            operator: string;
            values?: string[];
        };
        /** Format: date-time */
        "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": string;
        /** Format: date-time */
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time": string;
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString": number | string;
    };
}
